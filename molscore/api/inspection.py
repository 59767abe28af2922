"""What a bundle says about itself."""

from pathlib import Path
from typing import Any

from molscore.bundle.reader import Bundle, load_bundle
from molscore.bundle.shipped import find_model, shipped_models
from molscore.trust.stored import read_trust


def describe(model: str | Path) -> dict[str, Any]:
    """Return everything a bundle says about itself, as JSON-ready built-in types.

    Args:
        model: path of a `.molscore` file.

    Returns:
        The manifest, with `file` (path, size in bytes, sha256) and `n_parameters` (trained
        numbers and buffers of one expert) added.

    Raises:
        BundleError: when the file is missing, damaged or not to be trusted.
    """
    bundle = load_bundle(model)
    path = find_model(model)
    return {
        "file": {
            "path": str(path),
            "size": path.stat().st_size,
            "sha256": bundle.sha256,
            "model_id": bundle.model_id,
        },
        "n_parameters": sum(a.size for a in bundle.expert_weights(0).values()),
        "trust": _describe_trust(bundle),
        **bundle.manifest.to_dict(),
    }


def list_models() -> list[dict[str, Any]]:
    """Return what comes with the package: name, file, targets, size of training data and errors.

    Raises:
        BundleError: when one of the files is damaged.
    """
    listed = []
    for name, path in shipped_models().items():
        manifest = load_bundle(path).manifest
        targets = [
            {
                "name": target.name,
                "unit": target.unit,
                "note": target.note,
                "rmse": manifest.metrics.get(target.name, {}).get("mean", {}).get("rmse"),
            }
            for target in manifest.targets
        ]
        listed.append(
            {
                "name": name,
                "file": str(path),
                "experts": manifest.n_experts,
                "rows": manifest.training.get("counts", {}).get("rows_used"),
                "targets": targets,
            }
        )
    return listed


def _describe_trust(bundle: Bundle) -> dict[str, Any]:
    """Return what a bundle can say beside its predictions."""
    trust = read_trust(bundle)
    if trust is None:
        return {}
    names = [target.name for target in bundle.manifest.targets]
    structures = trust.structures
    return {
        "intervals": [n for n, i in zip(names, trust.intervals, strict=True) if i is not None],
        "calibrated classes": [
            n for n, c in zip(names, bundle.calibrations, strict=True) if c is not None
        ],
        "kinds of atoms": len(trust.atoms),
        "structures carried": 0 if structures is None else len(structures.smiles),
        "similarity of the domain": None if structures is None else structures.threshold,
    }

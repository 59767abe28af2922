"""What a bundle says about itself."""

from pathlib import Path
from typing import Any

from molscore.bundle.reader import load_bundle


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
    return {
        "file": {
            "path": str(model),
            "size": Path(model).stat().st_size,
            "sha256": bundle.sha256,
            "model_id": bundle.model_id,
        },
        "n_parameters": sum(a.size for a in bundle.expert_weights(0).values()),
        **bundle.manifest.to_dict(),
    }

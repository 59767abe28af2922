"""Where a model's numbers come from: what training writes into a bundle's manifest."""

import importlib.metadata
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import molscore
from molscore.bundle.manifest import Manifest
from molscore.chem.descriptors import DESCRIPTOR_NAMES
from molscore.chem.version import rdkit_version
from molscore.data.foreign import encodable
from molscore.data.targets import LabelledTable
from molscore.train.folder import RunConfig
from molscore.train.prepare import Prepared

PACKAGES: Final = ("molscore", "torch", "rdkit", "numpy", "onnx", "onnxruntime")


def build_manifest(
    table: LabelledTable,
    prepared: Prepared,
    config: RunConfig,
    metrics: dict[str, Any],
    output: Path,
    origin: Mapping[str, Any],
) -> Manifest:
    """Return the manifest of a new model; its members are filled in when it is written.

    Args:
        table: what it was trained on.
        prepared: what was used of it.
        config: of the run.
        metrics: of the cross-validation.
        output: file of the model.
        origin: other models and tables that had a part in it.
    """
    training = {
        "table": encodable(Path(table.name).name),
        "table_sha256": table.sha256,
        "data_sha256": config.data_sha256,
        "counts": prepared.counts,
        **origin,
        "config": config.train.used_by(config.model),
        "warnings": list(prepared.warnings),
        "notes": list(table.notes),
        "environment": _environment(("catboost",) if config.model.has_trees else ()),
    }
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        molscore_version=molscore.__version__,
        name=encodable(output.stem),
        rdkit_version=rdkit_version(),
        policy=config.policy,
        model=config.model,
        targets=table.targets,
        n_experts=config.train.n_experts,
        descriptor_names=DESCRIPTOR_NAMES if config.model.takes_descriptors else (),
        training=training,
        metrics=metrics,
    )


def _environment(extra: tuple[str, ...]) -> dict[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES + extra:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions

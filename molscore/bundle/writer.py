"""Write a bundle: check, hash, pack, and replace the file in one step."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.archive import pack
from molscore.bundle.manifest import Manifest, Member
from molscore.bundle.reader import check_weights, parse_bundle
from molscore.bundle.strict_json import dump_object
from molscore.bundle.tensors import TensorSpec, write_tensors
from molscore.data.outputs import Output
from molscore.errors import BundleError

ExpertWeights = Mapping[str, NDArray[Any]]


def save_bundle(
    path: str | Path,
    manifest: Manifest,
    *,
    experts: Sequence[ExpertWeights],
    onnx: bytes,
    arrays: ExpertWeights | None = None,
    force: bool = False,
) -> str:
    """Write a model to one `.molscore` file.

    The file is written beside its place and renamed, and what was packed is read back under
    the same checks as any stranger's bundle before that.

    Args:
        path: where to.
        manifest: `n_experts`, `tensors` and `members` are filled in here.
        experts: float32 (int64 for counts) arrays of each expert, by state-dict name.
        onnx: the skeleton, from `molscore.bundle.export.export_skeleton`.
        arrays: what else the model carries: descriptor scaler, structure keys, residuals.
        force: replace an existing file.

    Returns:
        SHA-256 of the file, 64 hex digits.

    Raises:
        ConfigError: when the file exists and `force` is not set.
        BundleError: when weights are NaN or infinite, experts do not have the same tensors, or
            the graph does not fit them.
        MolscoreError: when the file cannot be written.
    """
    raw = pack_bundle(manifest, experts=experts, onnx=onnx, arrays=arrays)
    output = Output(path, force=force)
    try:
        output.write(raw)
    except BaseException:
        output.discard()
        raise
    output.commit()
    return hashlib.sha256(raw).hexdigest()


def pack_bundle(
    manifest: Manifest,
    *,
    experts: Sequence[ExpertWeights],
    onnx: bytes,
    arrays: ExpertWeights | None = None,
) -> bytes:
    """Return the bytes of a bundle; see `save_bundle`. Equal arguments give equal bytes."""
    if not experts:
        raise BundleError("a bundle needs at least one expert")
    tensors = {
        f"expert{i}/{name}": np.asarray(array)
        for i, expert in enumerate(experts)
        for name, array in expert.items()
    }
    members = {
        "expert.onnx": onnx,
        "weights.safetensors": write_tensors(tensors),
        "arrays.safetensors": write_tensors(arrays or {}),
    }
    manifest = dataclasses.replace(
        manifest,
        n_experts=len(experts),
        tensors={name: TensorSpec.of(np.asarray(a)) for name, a in sorted(experts[0].items())},
        members={
            name: Member(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
            for name, data in members.items()
        },
    )
    check_weights(manifest, tensors, where="new bundle")
    try:
        text = dump_object(manifest.to_dict())
    except (TypeError, ValueError) as error:
        raise BundleError(f"the manifest cannot be written as JSON: {error}") from None
    raw = pack({"manifest.json": text, **members})
    parse_bundle(raw, where="new bundle")
    return raw

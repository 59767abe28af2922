"""Read a bundle without trusting it, and without torch or ONNX Runtime.

Order of the checks: file size, zip directory, manifest limits, schema, featuriser, members
against the manifest, hashes, tensor headers, shapes, finite weights, the ONNX graph.
"""

import hashlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.archive import MAX_FILE, MEMBER_LIMITS, unpack
from molscore.bundle.manifest import Manifest, manifest_from_json
from molscore.bundle.onnx_scan import scan
from molscore.bundle.shipped import SUFFIX, find_model, shipped_models
from molscore.bundle.signature import input_ports, output_port
from molscore.bundle.strict_json import parse_object
from molscore.bundle.summary import ClassCalibration
from molscore.bundle.tensors import Arrays, TensorSpec, read_tensors
from molscore.bundle.trees import check_trees
from molscore.chem.scaling import DescriptorScaler
from molscore.errors import BundleError

CALIBRATION_PREFIX: Final = "calibration/"
"""`calibration/T` is slope and intercept, float64 [2], for the logits of target number T."""

SCALER_PREFIX: Final = "descriptors/"
"""`descriptors/{i}/{key}` is array `key` of the descriptor scaler of expert i."""

_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, eq=False)
class Bundle:
    """A checked model.

    Attributes:
        where: what to call it in messages: its path as given.
        path: where it was read from, absolute; None if it was never a file.
        manifest: what it says about itself.
        sha256: of the whole file; the first 12 digits serve as the model's id.
        onnx: the skeleton, scanned: what a session may see.
        onnx_weights: the weights to inject into `onnx`, by state-dict name.
        arrays: descriptor scaler (names under `descriptors/`), structure keys, calibration of
            classes, and what `molscore.trust` stores.
        calibrations: one a target; None for a regression, and where there is none.
    """

    where: str
    path: Path | None
    manifest: Manifest
    sha256: str
    onnx: bytes
    onnx_weights: tuple[str, ...]
    arrays: Arrays
    calibrations: tuple[ClassCalibration | None, ...]
    _weights: Arrays
    _scalers: dict[int, DescriptorScaler]

    @property
    def model_id(self) -> str:
        """The first 12 hex digits of the file's hash."""
        return self.sha256[:12]

    def expert_weights(self, index: int) -> Arrays:
        """Return the arrays of one expert by state-dict name, read-only views."""
        if not 0 <= index < self.manifest.n_experts:
            raise IndexError(f"expert {index} of {self.manifest.n_experts}")
        prefix = f"expert{index}/"
        return {name: self._weights[prefix + name] for name in self.manifest.tensors}

    def scaler(self, index: int) -> DescriptorScaler:
        """Return the descriptor scaler of one expert; KeyError without descriptors."""
        return self._scalers[index]


def load_bundle(path: str | Path) -> Bundle:
    """Read and check a bundle.

    Args:
        path: a `.molscore` file, or the name of a model that comes with the package.

    Raises:
        BundleError: when it is missing, not a bundle, damaged, of another schema or featuriser
            version, or holds anything that `save_bundle` would not have written.
    """
    path = find_model(path)
    try:
        # Asked before opening, because opening a named pipe would wait for its writer.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BundleError(f"{path}: not a regular file")
        if status.st_size > MAX_FILE:
            raise BundleError(f"{path}: {status.st_size} bytes, more than {MAX_FILE} allowed")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        names = ", ".join(shipped_models()) or "none"
        raise BundleError(
            f"no such model: {path}; give a {SUFFIX} file, or the name of one that comes with "
            f"molscore ({names})"
        ) from None
    except (OSError, ValueError) as error:
        raise BundleError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if len(raw) > MAX_FILE:
        raise BundleError(f"{path}: more than {MAX_FILE} bytes")
    return parse_bundle(raw, where=str(path), path=path.absolute())


def parse_bundle(raw: bytes, *, where: str, path: Path | None = None) -> Bundle:
    """Check the bytes of a bundle; see `load_bundle`."""
    members = unpack(raw, where=where)
    if _MANIFEST not in members:
        raise BundleError(f"{where}: not a molscore bundle (no {_MANIFEST})")
    data = parse_object(
        members.pop(_MANIFEST), where=f"{where}: {_MANIFEST}", max_bytes=MEMBER_LIMITS[_MANIFEST]
    )
    manifest = manifest_from_json(data, where=where)
    _check_members(manifest, members, where)
    weights = read_tensors(members["weights.safetensors"], where=f"{where}: weights.safetensors")
    arrays = read_tensors(members["arrays.safetensors"], where=f"{where}: arrays.safetensors")
    check_weights(manifest, weights, where=where)
    onnx, onnx_weights = scan(
        members["expert.onnx"],
        tensors=manifest.tensors,
        inputs=input_ports(manifest.n_descriptors),
        outputs=(output_port(manifest.n_targets),),
        where=f"{where}: expert.onnx",
    )
    return Bundle(
        where=where,
        path=path,
        manifest=manifest,
        sha256=hashlib.sha256(raw).hexdigest(),
        onnx=onnx,
        onnx_weights=onnx_weights,
        arrays=arrays,
        calibrations=_read_calibrations(manifest, arrays, where),
        _weights=weights,
        _scalers=_read_scalers(manifest, arrays, where),
    )


def check_weights(manifest: Manifest, weights: Arrays, *, where: str) -> None:
    """Check weights against the manifest.

    Raises:
        BundleError: when a tensor is missing, foreign, of another dtype or shape than the
            manifest says, NaN or infinite, or trees do not make sense.
    """
    if not manifest.tensors:
        raise BundleError(f"{where}: the manifest names no tensors")
    n_tensors = manifest.n_experts * len(manifest.tensors)
    if len(weights) != n_tensors:
        raise BundleError(f"{where}: {len(weights)} weight tensors, the manifest says {n_tensors}")
    expected = {
        f"expert{i}/{name}": spec
        for i in range(manifest.n_experts)
        for name, spec in manifest.tensors.items()
    }
    for name, spec in expected.items():
        array = weights.get(name)
        if array is None:
            raise BundleError(f"{where}: weights of {name!r} are missing")
        found = TensorSpec.of(array)
        if found != spec:
            raise BundleError(
                f"{where}: {name!r} is {found.dtype} {list(found.shape)}, the manifest says "
                f"{spec.dtype} {list(spec.shape)}"
            )
        if not _finite(array):
            raise BundleError(f"{where}: {name!r} holds NaN or infinite weights")
    for i in range(manifest.n_experts if manifest.model.has_trees else 0):
        expert = {name: weights[f"expert{i}/{name}"] for name in manifest.tensors}
        check_trees(
            expert, manifest.n_targets, manifest.n_descriptors, where=f"{where}: expert {i}"
        )


def _check_members(manifest: Manifest, members: dict[str, bytes], where: str) -> None:
    if set(manifest.members) != set(MEMBER_LIMITS) - {_MANIFEST}:
        raise BundleError(f"{where}: the manifest lists other members than schema 1 has")
    if set(members) != set(manifest.members):
        name = sorted(set(members) ^ set(manifest.members))[0]
        raise BundleError(f"{where}: member {name!r} is missing or not in the manifest")
    for name, member in manifest.members.items():
        data = members[name]
        if len(data) != member.size:
            raise BundleError(
                f"{where}: {name} has {len(data)} bytes, the manifest says {member.size}"
            )
        if hashlib.sha256(data).hexdigest() != member.sha256:
            raise BundleError(f"{where}: {name} does not match its hash: the file is damaged")


def _read_scalers(manifest: Manifest, arrays: Arrays, where: str) -> dict[int, DescriptorScaler]:
    """Return the descriptor scaler of every expert; none for a model without descriptors."""
    parts: dict[str, Arrays] = {}
    for name, array in arrays.items():
        if name.startswith(SCALER_PREFIX):
            index, _, key = name.removeprefix(SCALER_PREFIX).partition("/")
            parts.setdefault(index, {})[key] = array
    n_experts = manifest.n_experts if manifest.n_descriptors else 0
    if set(parts) != {str(i) for i in range(n_experts)}:
        raise BundleError(f"{where}: expected descriptor scalers of {n_experts} experts")
    scalers = {}
    for index, part in parts.items():
        try:
            scalers[int(index)] = DescriptorScaler.from_arrays(part)
        except (BundleError, ValueError, OverflowError) as error:
            raise BundleError(f"{where}: expert {index}: {error}") from None
        if scalers[int(index)].names != manifest.descriptor_names:
            raise BundleError(f"{where}: the scaler of expert {index} is of other descriptors")
    return scalers


def _read_calibrations(
    manifest: Manifest, arrays: Arrays, where: str
) -> tuple[ClassCalibration | None, ...]:
    """Return the calibration of each target that has one."""
    found = {
        n.removeprefix(CALIBRATION_PREFIX): a
        for n, a in arrays.items()
        if n.startswith(CALIBRATION_PREFIX)
    }
    out: list[ClassCalibration | None] = []
    for t, target in enumerate(manifest.targets):
        array = found.pop(str(t), None)
        if array is None:
            out.append(None)
            continue
        whole = array.dtype == np.float64 and array.shape == (2,) and _finite(array)
        if not whole or array[0] <= 0 or target.kind != "classification":
            raise BundleError(f"{where}: {CALIBRATION_PREFIX}{t} is no calibration of a class")
        out.append(ClassCalibration(*array.tolist()))
    if found:
        raise BundleError(f"{where}: {CALIBRATION_PREFIX}{min(found)[:40]} is of no target")
    return tuple(out)


def _finite(array: NDArray[Any]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())

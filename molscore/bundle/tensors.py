"""Arrays in the safetensors form, read without trusting the header.

Layout: 8 bytes little-endian header length, a JSON header `name -> {dtype, shape,
data_offsets}`, then the data. Reading yields views of the bytes, so nothing is copied and
nothing is allocated on the word of the header.

Source: https://github.com/huggingface/safetensors (format section); `safetensors.numpy` writes
and serves as the oracle of the tests.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.strict_json import parse_object
from molscore.config import Config
from molscore.errors import BundleError, ConfigError

DTYPES: Final[dict[str, str]] = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "U64": "<u8",
    "U8": "|u1",
    "BOOL": "|b1",
}
MAX_HEADER: Final = 8 << 20
MAX_TENSORS: Final = 65_536
MAX_RANK: Final = 8
MAX_DIM: Final = 1 << 31

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class TensorSpec(Config):
    """Name of the dtype (as safetensors writes it) and shape of one tensor of an expert."""

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype {self.dtype!r} is not one of {', '.join(DTYPES)}")
        if len(self.shape) > MAX_RANK or any(type(n) is not int or n < 0 for n in self.shape):
            raise ConfigError("malformed shape")

    @classmethod
    def of(cls, array: NDArray[Any]) -> Self:
        """Return the specification `array` fulfils."""
        dtype = next(name for name, code in DTYPES.items() if np.dtype(code) == array.dtype)
        return cls(dtype=dtype, shape=array.shape)


def read_tensors(raw: bytes, *, where: str) -> Arrays:
    """Return the arrays in `raw` as read-only views, in the order of their offsets.

    Args:
        raw: the whole file.
        where: what to call it in an error message.

    Raises:
        BundleError: when the header is not what the format says, a dtype is not one of
            `DTYPES`, a shape does not fit its bytes, or bytes are left over or used twice.
    """
    if len(raw) < 8:
        raise BundleError(f"{where}: {len(raw)} bytes is too short for safetensors")
    length = int.from_bytes(raw[:8], "little")
    if length > min(MAX_HEADER, len(raw) - 8):
        raise BundleError(f"{where}: header of {length} bytes does not fit the file")
    header = parse_object(raw[8 : 8 + length], where=where, max_bytes=MAX_HEADER)
    header.pop("__metadata__", None)
    if len(header) > MAX_TENSORS:
        raise BundleError(f"{where}: {len(header)} tensors, more than {MAX_TENSORS}")
    entries = sorted(
        (_check_entry(name, entry, where) for name, entry in header.items()), key=lambda e: e[3]
    )
    arrays: Arrays = {}
    end = 0
    for name, dtype, shape, begin, stop in entries:
        if begin != end:
            raise BundleError(f"{where}: tensor {name!r} starts at {begin}, expected {end}")
        end = stop
        if 8 + length + end > len(raw):
            raise BundleError(f"{where}: tensor {name!r} ends after the file (truncated?)")
        arrays[name] = _view(raw, dtype, shape, 8 + length + begin, f"{where}: tensor {name!r}")
    if 8 + length + end != len(raw):
        raise BundleError(f"{where}: {len(raw) - 8 - length - end} bytes belong to no tensor")
    return arrays


def write_tensors(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return `arrays` in the safetensors form; the same arrays give the same bytes.

    Raises:
        BundleError: on a dtype that `read_tensors` would refuse.
    """
    from safetensors.numpy import save  # noqa: PLC0415 (only writing needs it)

    known = {np.dtype(code) for code in DTYPES.values()}
    for name, array in arrays.items():
        if array.dtype not in known:
            raise BundleError(f"tensor {name!r} has dtype {array.dtype}, which is not stored")
    return bytes(save({name: np.asarray(a, order="C") for name, a in sorted(arrays.items())}))


def _check_entry(
    name: str, entry: Any, where: str
) -> tuple[str, np.dtype[Any], tuple[int, ...], int, int]:
    """Return name, dtype, shape, begin and end of one header entry."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise BundleError(f"{where}: header entry of tensor {name!r} is malformed")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise BundleError(f"{where}: tensor {name!r} has dtype {code!r}, which is not allowed")
    if not _are_sizes(shape) or len(shape) > MAX_RANK or max(shape, default=0) > MAX_DIM:
        raise BundleError(f"{where}: tensor {name!r} has a malformed shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise BundleError(f"{where}: tensor {name!r} has malformed offsets")
    dtype = np.dtype(DTYPES[code])
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise BundleError(
            f"{where}: tensor {name!r} of shape {shape} needs "
            f"{math.prod(shape) * dtype.itemsize} bytes, the header gives {end - begin}"
        )
    return name, dtype, tuple(shape), begin, end


def _view(
    raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, what: str
) -> NDArray[Any]:
    size = math.prod(shape)
    if offset % dtype.itemsize:
        raise BundleError(f"{what} is not aligned")
    try:
        # numpy refuses to view zero bytes at the end of a buffer.
        flat = np.frombuffer(raw, dtype, size, offset) if size else np.empty(0, dtype)
        return flat.reshape(shape)
    except ValueError:  # an empty array whose other dimensions are absurd
        raise BundleError(f"{what} has a malformed shape") from None


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)

import json
import struct
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from molscore.bundle.tensors import DTYPES, TensorSpec, read_tensors, write_tensors
from molscore.errors import BundleError

ARRAYS = st.dictionaries(
    st.text("abc/.", min_size=1, max_size=6),
    st.sampled_from(sorted(DTYPES.values())).flatmap(
        lambda code: hnp.arrays(
            np.dtype(code), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
        )
    ),
    max_size=4,
)


def raw_file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@given(ARRAYS)
def test_reading_agrees_with_safetensors(arrays: dict[str, np.ndarray]) -> None:
    raw = write_tensors(arrays)
    oracle = safetensors.numpy.load(raw)
    found = read_tensors(raw, where="x")
    assert set(found) == set(oracle) == set(arrays)
    for name, array in found.items():
        assert array.dtype == oracle[name].dtype
        assert array.shape == arrays[name].shape
        assert array.tobytes() == oracle[name].tobytes()
        assert not array.flags.writeable or array.size == 0


def test_equal_arrays_give_equal_bytes_whatever_their_order() -> None:
    a, b = np.arange(3.0), np.arange(4)
    assert write_tensors({"a": a, "b": b}) == write_tensors({"b": b, "a": a})


def test_a_dtype_that_would_be_refused_is_not_written() -> None:
    with pytest.raises(BundleError, match="'a' has dtype complex128"):
        write_tensors({"a": np.zeros(1, dtype=complex)})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "too short"),
        (b"\xff" * 8, "does not fit the file"),
        (struct.pack("<Q", 1 << 40) + b"{}", "does not fit the file"),
        (raw_file(b"[]"), "expected a JSON object"),
        (raw_file({"a": 1}), "'a' is malformed"),
        (raw_file({"a": entry() | {"x": 1}}, b"0000"), "'a' is malformed"),
        (raw_file({"a": entry("F16", (2,))}, b"0000"), "dtype 'F16', which is not allowed"),
        (raw_file({"a": entry(shape=(-1,))}, b"0000"), "malformed shape"),
        (raw_file({"a": entry(shape=(1.5,))}, b"0000"), "malformed shape"),
        (raw_file({"a": entry(shape=(True,))}, b"0000"), "malformed shape"),
        (raw_file({"a": entry(shape=(1 << 60, 0), offsets=(0, 0))}), "malformed shape"),
        (raw_file({"a": entry(shape=(1 << 31,) * 4 + (0,), offsets=(0, 0))}), "malformed shape"),
        (raw_file({"a": entry(shape=(1,) * 9)}, b"0000"), "malformed shape"),
        (raw_file({"a": entry(shape=(1 << 20,))}, b"0000"), "needs 4194304 bytes"),
        (raw_file({"a": entry(offsets=(4, 8))}, b"00000000"), "starts at 4, expected 0"),
        (raw_file({"a": entry(), "b": entry()}, b"0000"), "starts at 0, expected 4"),
        (raw_file({"a": entry()}, b"00"), "ends after the file"),
        (raw_file({"a": entry()}, b"00000"), "1 bytes belong to no tensor"),
        (
            raw_file({"a": entry(), "b": entry("F64", offsets=(4, 12))}, b"0" * 12),
            "'b' is not aligned",
        ),
    ],
)
def test_a_header_that_lies_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        read_tensors(raw, where="weights")


@settings(max_examples=300)
@given(st.data())
def test_damage_is_refused_or_read_as_arrays(data: st.DataObject) -> None:
    raw = bytearray(write_tensors({"a": np.arange(6.0).reshape(2, 3), "b": np.arange(3)}))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        arrays = read_tensors(bytes(raw), where="x")
    except BundleError:
        return
    assert sum(a.nbytes for a in arrays.values()) <= len(raw)


def test_a_specification_is_that_of_the_array() -> None:
    spec = TensorSpec.of(np.zeros((2, 3), dtype=np.float32))
    assert spec == TensorSpec(dtype="F32", shape=(2, 3))
    assert TensorSpec.from_dict(spec.to_dict()) == spec

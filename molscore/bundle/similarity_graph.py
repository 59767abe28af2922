"""Nearest fingerprints as an ONNX graph: exact, and as fast as the arithmetic.

Tanimoto(a, b) = |a and b| / (|a| + |b| - |a and b|)

The common bits of many pairs are a product of integer matrices, which ONNX Runtime computes with
the processor's instructions for bytes. Sums of ones and zeros are exact, so a similarity depends
on nothing but its two fingerprints.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.onnx_session import open_standalone
from molscore.bundle.signature import IR_VERSION, OPSET

Bits = NDArray[np.uint8]

_BATCH = 32
"""Molecules at a time: a batch's similarities stay in the cache."""


class SimilaritySearch:
    """Finds the nearest of n stored fingerprints.

    Args:
        fingerprints: uint8 [n, n_bytes], packed bits; n is at least 1.
        k: how many to find, at least 1.
    """

    def __init__(self, fingerprints: Bits, k: int) -> None:
        self.k = min(k, len(fingerprints))
        self._run = open_standalone(_build(fingerprints, self.k))

    def nearest(self, fingerprints: Bits) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the nearest of the stored fingerprints.

        Args:
            fingerprints: uint8 [m, n_bytes].

        Returns:
            Similarities [m, k], the largest first, and whose they are [m, k]; of equal ones the
            one stored first.
        """
        similar = np.empty((len(fingerprints), self.k))
        index = np.empty((len(fingerprints), self.k), dtype=np.int64)
        for start in range(0, len(fingerprints), _BATCH):
            part = slice(start, start + _BATCH)
            bits = np.unpackbits(fingerprints[part], axis=1)
            n_bits = bits.sum(axis=1, dtype=np.int32)[:, None]
            found = self._run({"bits": bits, "n_bits": n_bits})
            similar[part], index[part] = found["similarity"], found["index"]
        return similar, index


def _build(fingerprints: Bits, k: int) -> bytes:
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    bits = np.unpackbits(fingerprints, axis=1)
    constants: dict[str, NDArray[Any]] = {
        # Signed, because the fast instructions multiply unsigned with signed bytes.
        "stored": np.ascontiguousarray(bits.T).astype(np.int8),
        "n_stored": bits.sum(axis=1, dtype=np.int32)[None],
        "one": np.array(1, dtype=np.int32),
        "k": np.array([k], dtype=np.int64),
    }
    nodes = [
        helper.make_node("MatMulInteger", ["bits", "stored"], ["common"]),
        helper.make_node("Add", ["n_bits", "n_stored"], ["sum"]),
        helper.make_node("Sub", ["sum", "common"], ["union"]),
        helper.make_node("Max", ["union", "one"], ["divisor"]),
        helper.make_node("Cast", ["common"], ["common_float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["divisor"], ["divisor_float"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["common_float", "divisor_float"], ["all"]),
        helper.make_node("TopK", ["all", "k"], ["similarity", "index"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "similarity",
        [
            helper.make_tensor_value_info("bits", TensorProto.UINT8, ["m", bits.shape[1]]),
            helper.make_tensor_value_info("n_bits", TensorProto.INT32, ["m", 1]),
        ],
        [
            helper.make_tensor_value_info("similarity", TensorProto.FLOAT, ["m", k]),
            helper.make_tensor_value_info("index", TensorProto.INT64, ["m", k]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    return bytes(model.SerializeToString())

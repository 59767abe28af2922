"""A bundle made by hand, without torch: its prediction can be worked out on paper.

Expert i predicts, for target t, sum over atoms of weight[element, t] * (1 + i / 10), plus the
sum of the scaled descriptors where it takes any. The weights of element code c and target t
are (c + 1) / 100 + t / 10.
"""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from molscore.bundle.manifest import Manifest
from molscore.bundle.signature import OPSET, WEIGHTS_LOCATION, input_ports, output_port
from molscore.bundle.writer import pack_bundle
from molscore.chem.features import ELEMENTS
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target
from molscore.nn.config import ModelConfig

N_ELEMENTS = len(ELEMENTS) + 1
TARGETS = (Target(name="logS", unit="log10 mol/L"),)


def weights(n_targets: int = 1, n_descriptors: int = 0, expert: int = 0) -> dict[str, Any]:
    table = (np.arange(N_ELEMENTS)[:, None] + 1) / 100 + np.arange(n_targets)[None, :] / 10
    arrays = {"table": (table * (1 + expert / 10)).astype(np.float32)}
    if n_descriptors:
        arrays["mix"] = np.ones((n_descriptors, n_targets), dtype=np.float32)
    return arrays


def external(name: str, array: np.ndarray, location: str = WEIGHTS_LOCATION) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def graph(n_targets: int = 1, n_descriptors: int = 0) -> Any:
    """Return the skeleton as a ModelProto."""
    kinds = {"int64": TensorProto.INT64, "float32": TensorProto.FLOAT}

    def value(port: Any) -> Any:
        return helper.make_tensor_value_info(port.name, kinds[port.dtype], port.shape)

    def constant(name: str, numbers: Any) -> Any:
        return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)

    last = "sums" if n_descriptors else "prediction"
    nodes = [
        helper.make_node("Gather", ["atom_codes", "zero"], ["element"], axis=1),
        helper.make_node("Gather", ["table", "element"], ["rows"], axis=0),
        helper.make_node("Shape", ["n_atoms"], ["n_graphs"]),
        helper.make_node("Concat", ["n_graphs", "n_targets"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Unsqueeze", ["graph_id", "one"], ["index"]),
        helper.make_node("ScatterND", ["zeros", "index", "rows"], [last], reduction="add"),
    ]
    initializers = [
        constant("zero", 0),
        constant("one", [1]),
        constant("n_targets", [n_targets]),
        external("table", weights(n_targets)["table"]),
    ]
    if n_descriptors:
        nodes += [
            helper.make_node("Gemm", ["descriptors", "mix"], ["extra"]),
            helper.make_node("Add", ["sums", "extra"], ["prediction"]),
        ]
        initializers.append(external("mix", weights(n_targets, n_descriptors)["mix"]))
    return helper.make_model(
        helper.make_graph(
            nodes,
            "expert",
            [value(port) for port in input_ports(n_descriptors)],
            [value(output_port(n_targets))],
            initializer=initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=10,
    )


def manifest(targets: tuple[Target, ...] = TARGETS, **changes: Any) -> Manifest:
    values: dict[str, Any] = {
        "created": "2026-01-01T00:00:00+00:00",
        "molscore_version": "0.1.0",
        "name": "handmade",
        "rdkit_version": "2026.09.1",
        "policy": ChemPolicy(),
        "model": ModelConfig(width=16),
        "targets": targets,
        "n_experts": 1,
    }
    return Manifest(**(values | changes))


def bundle_bytes(
    targets: tuple[Target, ...] = TARGETS, n_experts: int = 2, **changes: Any
) -> bytes:
    """Return a whole bundle; `changes` go to `pack_bundle` or, failing that, the manifest."""
    packing: dict[str, Any] = {
        "experts": [weights(len(targets), expert=i) for i in range(n_experts)],
        "onnx": graph(len(targets)).SerializeToString(),
        "arrays": {},
    }
    for key in list(changes):
        if key in packing:
            packing[key] = changes.pop(key)
    return pack_bundle(manifest(targets, **changes), **packing)


def expected(symbols: list[str], target: int = 0, expert: int = 0) -> float:
    """What expert `expert` predicts for a molecule of these heavy atoms."""
    codes = [ELEMENTS.index(symbol) for symbol in symbols]
    return sum((code + 1) / 100 + target / 10 for code in codes) * (1 + expert / 10)

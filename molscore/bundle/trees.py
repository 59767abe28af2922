"""Boosted trees as arrays, and the ONNX graph that evaluates them.

The trees are oblivious, as CatBoost makes them: all nodes of a level ask the same question, so
a tree of depth D is D questions and 2^D leaves. With x the scaled descriptors of a molecule:

    leaf_t = sum over levels l of 2^l [x[feature_lt] > threshold_lt]
    y = shift + sum over the trees t of the target of values[leaf_t, t]

The arrays are injected like the weights of a network, and the graph needs standard operators
only. ONNX's own tree operator (ai.onnx.ml) would be fourteen times the size, and its node ids
would have to be trusted: here there is no path to follow that could leave the arrays or loop.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.signature import (
    IR_VERSION,
    OPSET,
    OUTPUT,
    WEIGHTS_LOCATION,
    Port,
    input_ports,
    output_port,
)
from molscore.errors import BundleError

if TYPE_CHECKING:
    from onnx import ModelProto

DEPTH: Final = 6
"""Questions a tree asks: CatBoost's default."""

MAX_TREES: Final = 100_000
"""Trees of all targets of one expert."""

FEATURE: Final = "trees/feature"
"""int64 [DEPTH * n_trees], column of the descriptors, level by level."""
THRESHOLD: Final = "trees/threshold"
"""float32 [DEPTH * n_trees], in the same order."""
VALUES: Final = "trees/values"
"""float32 [2^DEPTH, n_trees], the leaves, target by target along the trees."""
SHIFT: Final = "trees/shift"
"""float32 [n_targets]."""
WEIGHT: Final = "blend/weight"
"""float32 [n_targets], the share of the network in a blend."""

NEVER: Final = float(np.finfo(np.float32).max)
"""The threshold of a question that is always answered with no: smaller trees are padded."""

_FLOAT, _INT64 = 1, 7  # onnx.TensorProto.DataType
_ANSWERS: Final = 1 << 21
"""Answers to questions held at a time while trees are evaluated; a molecule has thousands."""

TreeArrays = Mapping[str, NDArray[Any]]


def tree_shapes(n_targets: int, iterations: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of one expert with `iterations` trees a target."""
    n_trees = n_targets * iterations
    return {
        FEATURE: (DEPTH * n_trees,),
        THRESHOLD: (DEPTH * n_trees,),
        VALUES: (2**DEPTH, n_trees),
        SHIFT: (n_targets,),
    }


def evaluate_trees(arrays: TreeArrays, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the trees of an expert give, float64 [n, n_targets].

    Args:
        arrays: see the names above.
        x: float32 [n, n_descriptors], scaled.
    """
    n_targets, n_trees = len(arrays[SHIFT]), arrays[VALUES].shape[1]
    powers, trees = 2 ** np.arange(DEPTH)[:, None], np.arange(n_trees)
    out = np.empty((len(x), n_targets))
    n_rows = max(1, _ANSWERS // (DEPTH * n_trees))
    for start in range(0, len(x), n_rows):
        part = x[start : start + n_rows]
        above = part[:, arrays[FEATURE]] > arrays[THRESHOLD]
        leaf = (above.reshape(len(part), DEPTH, n_trees) * powers).sum(axis=1)
        found = arrays[VALUES][leaf, trees].reshape(len(part), n_targets, -1)
        out[start : start + n_rows] = found.sum(axis=2, dtype=np.float64)
    return out + arrays[SHIFT]


def check_trees(arrays: TreeArrays, n_targets: int, n_descriptors: int, *, where: str) -> None:
    """Check the trees of one expert.

    Raises:
        BundleError: when an array is missing, they do not have the shapes of each other, there
            are too many trees, or one asks for a descriptor that is not there.
    """
    for name in (FEATURE, THRESHOLD, VALUES, SHIFT):
        if name not in arrays:
            raise BundleError(f"{where}: {name!r} is missing")
    iterations = arrays[VALUES].size // (2**DEPTH * n_targets)
    if not 1 <= iterations * n_targets <= MAX_TREES:
        raise BundleError(f"{where}: {iterations * n_targets} trees, expected 1 to {MAX_TREES}")
    for name, shape in tree_shapes(n_targets, iterations).items():
        found, kind = arrays[name], "int64" if name == FEATURE else "float32"
        if found.shape != shape or found.dtype != kind:
            raise BundleError(
                f"{where}: {name!r} is {found.dtype} {list(found.shape)}, expected {kind} "
                f"{list(shape)}"
            )
    feature = arrays[FEATURE]
    if feature.min() < 0 or feature.max() >= n_descriptors:
        raise BundleError(f"{where}: a tree asks for a descriptor that is not there")


def tree_skeleton(n_targets: int, iterations: int, n_descriptors: int) -> bytes:
    """Return the ONNX graph of any expert of trees, its arrays external.

    Args:
        n_targets: number of outputs.
        iterations: trees a target.
        n_descriptors: columns of the descriptors.
    """
    from onnx import helper  # noqa: PLC0415 (start-up)

    model = helper.make_model(
        helper.make_graph([], "expert", [], []),
        producer_name="molscore",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    _declare(model, n_targets, n_descriptors)
    _add_trees(model, n_targets, iterations, OUTPUT)
    return bytes(model.SerializeToString(deterministic=True))


def blend_skeleton(network: bytes, n_targets: int, iterations: int, n_descriptors: int) -> bytes:
    """Return the graph of a network and trees together: y = trees + weight (network - trees).

    Args:
        network: skeleton of the network, from `molscore.bundle.export.export_skeleton`.
        n_targets: number of outputs.
        iterations: trees a target.
        n_descriptors: columns of the descriptors.
    """
    from onnx import ModelProto  # noqa: PLC0415 (start-up)

    model = ModelProto.FromString(network)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["blend/network" if name == OUTPUT else name for name in names]
    _declare(model, n_targets, n_descriptors)
    _add_trees(model, n_targets, iterations, "blend/trees")
    _external(model, WEIGHT, _FLOAT, (n_targets,))
    _node(model, "Sub", ["blend/network", "blend/trees"], "blend/difference")
    _node(model, "Mul", ["blend/difference", WEIGHT], "blend/share")
    _node(model, "Add", ["blend/trees", "blend/share"], OUTPUT)
    return bytes(model.SerializeToString(deterministic=True))


def _declare(model: "ModelProto", n_targets: int, n_descriptors: int) -> None:
    """Set the inputs and the output of an expert."""
    from onnx import helper  # noqa: PLC0415

    def value(port: Port) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(port.dtype))
        return helper.make_tensor_value_info(port.name, kind, list(port.shape))

    del model.graph.input[:], model.graph.output[:]
    model.graph.input.extend(value(port) for port in input_ports(n_descriptors))
    model.graph.output.append(value(output_port(n_targets)))


def _add_trees(model: "ModelProto", n_targets: int, iterations: int, output: str) -> None:
    for name, shape in tree_shapes(n_targets, iterations).items():
        _external(model, name, _INT64 if name == FEATURE else _FLOAT, shape)
    levels = _integers(model, "trees/by_level", [-1, DEPTH, n_targets * iterations])
    targets = _integers(model, "trees/by_target", [-1, n_targets, iterations])
    one, two = _integers(model, "trees/one", [1]), _integers(model, "trees/two", [2])
    powers = _constant(model, "trees/powers", 2.0 ** np.arange(DEPTH, dtype=np.float32)[:, None])
    x = _node(model, "Gather", ["descriptors", FEATURE], "trees/asked", axis=1)
    x = _node(model, "Greater", [x, THRESHOLD], "trees/above")
    x = _node(model, "Cast", [x], "trees/bits", to=_FLOAT)
    x = _node(model, "Reshape", [x, levels], "trees/levels")
    x = _node(model, "Mul", [x, powers], "trees/weighted")
    x = _node(model, "ReduceSum", [x, one], "trees/sum", keepdims=0)
    x = _node(model, "Cast", [x], "trees/leaf", to=_INT64)
    x = _node(model, "GatherElements", [VALUES, x], "trees/found", axis=0)
    x = _node(model, "Reshape", [x, targets], "trees/targets")
    x = _node(model, "ReduceSum", [x, two], "trees/total", keepdims=0)
    _node(model, "Add", [x, SHIFT], output)


def _node(model: "ModelProto", op: str, inputs: list[str], output: str, **attributes: Any) -> str:
    from onnx import helper  # noqa: PLC0415

    model.graph.node.append(helper.make_node(op, inputs, [output], **attributes))
    return output


def _integers(model: "ModelProto", name: str, values: list[int]) -> str:
    return _constant(model, name, np.array(values, dtype=np.int64))


def _constant(model: "ModelProto", name: str, values: NDArray[Any]) -> str:
    from onnx import numpy_helper  # noqa: PLC0415

    model.graph.initializer.append(numpy_helper.from_array(values, name))
    return name


def _external(model: "ModelProto", name: str, kind: int, shape: tuple[int, ...]) -> None:
    from onnx import TensorProto  # noqa: PLC0415

    tensor = model.graph.initializer.add(
        name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL
    )
    tensor.external_data.add(key="location", value=WEIGHTS_LOCATION)

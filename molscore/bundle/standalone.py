"""One ONNX graph for other programs: all experts, their weights, units as in the table.

    x (codes) -> expert_1 ... expert_E -> per target: sigmoid, or the transform undone
              -> mean, sd over the experts

The experts are copies of the bundle's skeleton with their weights inside; the last part
computes in double precision, as `molscore.predict` does.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.manifest import Manifest
from molscore.bundle.onnx_session import open_session, open_standalone
from molscore.bundle.reader import Bundle
from molscore.bundle.signature import IR_VERSION, OPSET, OUTPUT, Port, input_ports
from molscore.bundle.summary import Floats, combine, to_reported
from molscore.bundle.tracing import CHECKED_SIZES, TOLERANCE, example_arrays
from molscore.errors import ExportError

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

_DESCRIPTORS: Final = "descriptors"
MAX_SCORE: Final = 10.0
"""Where `DescriptorScaler.transform` ends; `_check` would notice another value."""

_FLOAT, _DOUBLE = 1, 11  # onnx.TensorProto.DataType


def standalone_inputs(manifest: Manifest) -> tuple[Port, ...]:
    """Return the inputs: those of an expert, with descriptors as RDKit gives them (NaN too).

    A model made of descriptors takes them alone: the graph arrays, which an expert is fed and
    does not read, are left out.
    """
    ports = tuple(
        Port(port.name, "float64", port.shape) if port.name == _DESCRIPTORS else port
        for port in input_ports(manifest.n_descriptors)
    )
    return ports[-1:] if manifest.model.of_descriptors else ports


def standalone_outputs(n_experts: int, n_targets: int) -> tuple[Port, ...]:
    """Return the outputs: `mean`, and with several experts `sd`."""
    shape = ("graphs", n_targets)
    mean, sd = Port("mean", "float32", shape), Port("sd", "float32", shape)
    return (mean, sd) if n_experts > 1 else (mean,)


class _Graph:
    """Nodes and constants while a graph is put together."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx.numpy_helper import from_array  # noqa: PLC0415

        self.constants.append(from_array(np.asarray(value), name))
        return name

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        from onnx.helper import make_node  # noqa: PLC0415

        self.nodes.append(make_node(op, list(inputs), [output], name=output, **attributes))
        return output


def compose_standalone(bundle: Bundle) -> bytes:
    """Return all experts of a bundle as one ONNX model that needs nothing else.

    Raises:
        ExportError: when the composed graph is not valid ONNX, or does not give what the bundle
            predicts.
    """
    from onnx import checker, helper  # noqa: PLC0415

    manifest = bundle.manifest
    graph = _Graph()
    outputs = [_add_expert(graph, bundle, i) for i in range(manifest.n_experts)]
    _add_summary(graph, outputs, bundle)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "molscore",
            [_value(port) for port in standalone_inputs(manifest)],
            [_value(port) for port in standalone_outputs(manifest.n_experts, manifest.n_targets)],
            initializer=graph.constants,
        ),
        producer_name="molscore",
        producer_version=manifest.molscore_version,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(
        model,
        {
            "molscore_model": manifest.name,
            "molscore_sha256": bundle.sha256,
            "targets": ", ".join(target.name for target in manifest.targets),
        },
    )
    try:
        checker.check_model(model, full_check=True)
    except Exception as error:
        raise ExportError(f"the composed graph is not valid ONNX: {error}") from error
    raw = bytes(model.SerializeToString(deterministic=True))
    _check(bundle, raw)
    return raw


def _check(bundle: Bundle, onnx: bytes) -> None:
    """Run the composed graph beside the experts it was made of."""
    manifest = bundle.manifest
    run = open_standalone(onnx)
    sessions = [
        open_session(bundle.onnx, bundle.expert_weights(i), bundle.onnx_weights)
        for i in range(manifest.n_experts)
    ]
    for seed, sizes in enumerate(CHECKED_SIZES):
        batch, numbers = example_arrays(sizes, manifest.n_descriptors, seed=seed)
        raw = None if numbers is None else _odd_descriptors(numbers)
        inputs: dict[str, NDArray[Any]] = dict(batch._asdict())
        outputs = []
        for i, session in enumerate(sessions):
            if raw is not None:
                inputs[_DESCRIPTORS] = bundle.scaler(i).transform(raw)
            outputs.append(session.run(inputs))
        stacked = np.stack(outputs)
        reported = np.stack(
            [
                to_reported(stacked[:, :, t], target, bundle.calibrations[t])
                for t, target in enumerate(manifest.targets)
            ],
            axis=2,
        )
        wanted = dict(zip(("mean", "sd"), combine(reported), strict=True))
        if raw is not None:
            inputs[_DESCRIPTORS] = raw
        given = {port.name: inputs[port.name] for port in standalone_inputs(manifest)}
        for name, found in run(given).items():
            _compare(name, found, wanted[name], wanted["mean"])


def _odd_descriptors(numbers: NDArray[np.float32]) -> Floats:
    """Spread made-up values over all magnitudes, a few missing or infinite among them."""
    values = np.sinh(12 * numbers.astype(np.float64))
    values.flat[::7] = np.nan
    values.flat[3::11] = np.inf
    values.flat[5::13] = -1e300
    return values


def _compare(name: str, found: NDArray[Any], wanted: Floats, mean: Floats) -> None:
    # What overflows for a made-up molecule says nothing about the graph.
    usable = np.isfinite(wanted) & (np.abs(wanted) < np.finfo(np.float32).max)
    difference = np.abs(found - wanted, where=usable, out=np.zeros_like(wanted))
    # Measured by the size of the target, which may be anything.
    size = np.abs(mean, where=np.isfinite(mean), out=np.zeros_like(mean))
    size = np.where(size < np.finfo(np.float32).max, size, 0.0).max(axis=0)
    bound = TOLERANCE * np.maximum(size, np.abs(wanted))
    if found.shape != wanted.shape or not (difference <= bound)[usable].all():
        raise ExportError(f"{name!r} of the composed graph differs by {difference.max():.2g}")


def _value(port: Port) -> Any:
    from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype  # noqa: PLC0415

    return make_tensor_value_info(
        port.name, np_dtype_to_tensor_dtype(np.dtype(port.dtype)), list(port.shape)
    )


def _add_scaler(graph: _Graph, bundle: Bundle, index: int) -> str:
    """Impute, clip and scale, as `molscore.chem.scaling.DescriptorScaler.transform` does."""
    at, scaler = f"scaler{index}", bundle.scaler(index)
    name = {
        key: graph.constant(f"{at}/{key}", getattr(scaler, key))
        for key in ("median", "lower", "upper", "mean", "scale")
    }
    # A comparison with NaN is false, so this finds what is missing, infinite or absurd.
    largest = graph.constant(f"{at}/largest", np.array(float(np.finfo(np.float32).max)))
    size = graph.add("Abs", [_DESCRIPTORS], f"{at}/size")
    present = graph.add("LessOrEqual", [size, largest], f"{at}/present")
    x = graph.add("Where", [present, _DESCRIPTORS, name["median"]], f"{at}/imputed")
    x = graph.add("Max", [x, name["lower"]], f"{at}/raised")
    x = graph.add("Min", [x, name["upper"]], f"{at}/clipped")
    x = graph.add("Sub", [x, name["mean"]], f"{at}/centred")
    x = graph.add("Div", [x, name["scale"]], f"{at}/scaled")
    limits = [graph.constant(f"{at}/{s}", np.array(s * MAX_SCORE)) for s in (-1, 1)]
    x = graph.add("Clip", [x, *limits], f"{at}/score")
    return graph.add("Cast", [x], f"{at}/descriptors", to=_FLOAT)


def _add_expert(graph: _Graph, bundle: Bundle, index: int) -> str:
    """Copy the skeleton under names of its own and return the name of its output."""
    from onnx import ModelProto, NodeProto, TensorProto  # noqa: PLC0415

    skeleton = ModelProto.FromString(bundle.onnx).graph
    weights = bundle.expert_weights(index)
    shared = {port.name: port.name for port in input_ports(bundle.manifest.n_descriptors)}
    if _DESCRIPTORS in shared:
        shared[_DESCRIPTORS] = _add_scaler(graph, bundle, index)

    def renamed(name: str) -> str:
        # An empty name stands for an optional input that is not given.
        return shared.get(name, f"expert{index}/{name}") if name else name

    for tensor in skeleton.initializer:
        if tensor.name in bundle.onnx_weights:
            graph.constant(renamed(tensor.name), weights[tensor.name])
        else:
            copy = TensorProto()
            copy.CopyFrom(tensor)
            copy.name = renamed(tensor.name)
            graph.constants.append(copy)
    ranks = _ranks(bundle.onnx)
    for k, node in enumerate(skeleton.node):
        twin = NodeProto()
        twin.CopyFrom(node)
        twin.name = f"expert{index}/node{k}"
        twin.input[:] = [renamed(name) for name in node.input]
        twin.output[:] = [renamed(name) for name in node.output]
        if node.op_type == "ScatterND":
            _add_sum(graph, twin, ranks.get(node.input[2]))
        else:
            graph.nodes.append(twin)
    return renamed(OUTPUT)


def _ranks(raw: bytes) -> dict[str, int]:
    """Return the number of axes of every value in a graph, where it can be inferred."""
    from onnx import ModelProto, shape_inference  # noqa: PLC0415

    graph = shape_inference.infer_shapes(ModelProto.FromString(raw)).graph
    known = [*graph.value_info, *graph.input, *graph.output]
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in known}
    return ranks | {tensor.name: len(tensor.dims) for tensor in graph.initializer}


def _add_sum(graph: _Graph, node: "NodeProto", rank: int | None) -> None:
    """Add a sum of rows by index in a form that is right with any number of threads.

    ONNX Runtime spreads a ScatterND over its threads, which then add to the same row without
    waiting for each other: sums come out wrong now and then. ScatterElements is not spread.
    """
    reduction = [a.s for a in node.attribute if a.name == "reduction"]
    if reduction != [b"add"] or rank is None:
        raise ExportError("the graph holds a ScatterND that is no plain sum of rows")
    data, index, rows = node.input
    at = node.output[0]
    shape = graph.constant(f"{at}/index_shape", np.array([-1, *[1] * (rank - 1)]))
    column = graph.add("Reshape", [index, shape], f"{at}/index_column")
    wanted = graph.add("Shape", [rows], f"{at}/rows_shape")
    whole = graph.add("Expand", [column, wanted], f"{at}/index_whole")
    graph.add("ScatterElements", [data, whole, rows], at, axis=0, reduction="add")


def _add_summary(graph: _Graph, outputs: list[str], bundle: Bundle) -> None:
    """From raw outputs [n_graphs, n_targets] of each expert to `mean` and `sd`."""
    first = graph.constant("summary/axis", np.array([0]))
    rows = [graph.add("Unsqueeze", [name, first], f"{name}_row") for name in outputs]
    stacked = graph.add("Concat", rows, "summary/raw", axis=0)
    double = graph.add("Cast", [stacked], "summary/double", to=_DOUBLE)
    reported = _add_inverse(graph, double, bundle)
    mean = graph.add("ReduceMean", [reported, first], "summary/mean", keepdims=0)
    graph.add("Cast", [mean], "mean", to=_FLOAT)
    if len(outputs) == 1:
        return
    centred = graph.add("Sub", [reported, mean], "summary/centred")
    squares = graph.add("Mul", [centred, centred], "summary/squares")
    total = graph.add("ReduceSum", [squares, first], "summary/total", keepdims=0)
    count = graph.constant("summary/count", np.array(len(outputs) - 1.0))
    variance = graph.add("Div", [total, count], "summary/variance")
    graph.add("Cast", [graph.add("Sqrt", [variance], "summary/sd")], "sd", to=_FLOAT)


def _add_inverse(graph: _Graph, raw: str, bundle: Bundle) -> str:
    """Undo transforms, calibrate and squash logits, target by target along the last axis."""
    columns = []
    for t, target in enumerate(bundle.manifest.targets):
        index = graph.constant(f"target{t}/index", np.array([t]))
        x = graph.add("Gather", [raw, index], f"target{t}/raw", axis=2)
        calibration = bundle.calibrations[t]
        if calibration is not None:
            slope = graph.constant(f"target{t}/slope", np.array(calibration.slope))
            intercept = graph.constant(f"target{t}/intercept", np.array(calibration.intercept))
            x = graph.add("Mul", [x, slope], f"target{t}/sloped")
            x = graph.add("Add", [x, intercept], f"target{t}/calibrated")
        kind = "sigmoid" if target.kind == "classification" else target.transform
        columns.append(_inverse(graph, x, kind, f"target{t}"))
    return graph.add("Concat", columns, "summary/reported", axis=2)


def _inverse(graph: _Graph, x: str, kind: str, prefix: str) -> str:
    if kind == "none":
        return x
    if kind == "sigmoid":
        return graph.add("Sigmoid", [x], f"{prefix}/reported")
    if kind == "ln":
        return graph.add("Exp", [x], f"{prefix}/reported")
    if kind == "log10":
        ten = graph.constant(f"{prefix}/ten", np.array(10.0))
        return graph.add("Pow", [ten, x], f"{prefix}/reported")
    if kind == "log1p":
        one = graph.constant(f"{prefix}/one", np.array(1.0))
        return graph.add("Sub", [graph.add("Exp", [x], f"{prefix}/exp"), one], f"{prefix}/reported")
    raise ExportError(f"the transform {kind!r} has no ONNX form")

"""Look at an ONNX graph before a session sees it.

ONNX Runtime would read external data from the working directory, call functions of other
domains, and run loops without an end. A bundle's graph needs none of that, so everything that
`molscore.bundle.export` does not write is refused, field by field. `scan` returns the bytes of
what it looked at, without unknown fields: what was checked is what runs.

What a scan cannot promise: allowed operators can still be arranged to waste memory or time.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from molscore.bundle.onnx_operators import INTS, TENSOR, check_operator
from molscore.bundle.signature import WEIGHTS_LOCATION, Port
from molscore.bundle.tensors import TensorSpec
from molscore.errors import BundleError

MIN_OPSET: Final = 18
MAX_OPSET: Final = 21
MAX_IR: Final = 11
MAX_NODES: Final = 50_000
MAX_CONSTANT: Final = 1 << 16  # bytes of one constant inside the graph
MAX_CONSTANTS: Final = 1 << 20  # bytes of all of them
MAX_EXTENT: Final = 1 << 24  # elements a constant shape may ask for

# The fields of each message that an exported graph has; anything else is refused.
_MODEL_FIELDS = {"ir_version", "producer_name", "producer_version", "graph", "opset_import"}
_GRAPH_FIELDS = {"node", "name", "initializer", "input", "output"}
_NODE_FIELDS = {"input", "output", "name", "op_type", "attribute"}
_ATTRIBUTE_FIELDS = {"name", "type", "f", "i", "s"}
_TENSOR_FIELDS = {"dims", "data_type", "name", "raw_data", "float_data", "int32_data", "int64_data"}
_EXTERNAL_FIELDS = {"dims", "data_type", "name", "external_data", "data_location"}
_VALUE_FIELDS = {"name", "type"}
_FLOAT, _INT64 = 1, 7  # onnx.TensorProto.DataType
_DTYPE_CODES: Final[dict[str, int]] = {
    "F32": _FLOAT,
    "I64": _INT64,
    "float32": _FLOAT,
    "int64": _INT64,
}
_SHAPE_INPUT: Final[dict[str, int]] = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}


def scan(
    raw: bytes,
    *,
    tensors: Mapping[str, TensorSpec],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    where: str = "expert.onnx",
) -> tuple[bytes, tuple[str, ...]]:
    """Check a skeleton and return what may be given to a session.

    Args:
        raw: the ONNX model.
        tensors: dtype and shape of every tensor of one expert.
        inputs: what it must take, all of it and nothing else.
        outputs: what it must give, likewise.
        where: what to call the graph in an error message.

    Returns:
        The scanned model without unknown fields, and the names of its external initialisers,
        each of which is in `tensors`.

    Raises:
        BundleError: on the first thing that is not allowed.
    """
    from onnx import ModelProto  # noqa: PLC0415 (start-up)

    model = ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception:  # noqa: BLE001 (protobuf's DecodeError has no typed home)
        raise BundleError(f"{where}: not an ONNX model") from None
    model.DiscardUnknownFields()
    _check_fields(model, _MODEL_FIELDS, where)
    _check_versions(model, where)
    graph = model.graph
    _check_fields(graph, _GRAPH_FIELDS, where)
    _check_values(graph.input, inputs, f"{where}: input")
    _check_values(graph.output, outputs, f"{where}: output")
    if len(graph.node) > MAX_NODES:
        raise BundleError(f"{where}: {len(graph.node)} nodes, more than the {MAX_NODES} allowed")
    for node in graph.node:
        _check_node(node, where)
    shapes = {
        node.input[_SHAPE_INPUT[node.op_type]]
        for node in graph.node
        if node.op_type in _SHAPE_INPUT
    }
    taken = {port.name for port in inputs}
    external, size = _check_initializers(graph.initializer, tensors, taken, shapes, where)
    if size > MAX_CONSTANTS:
        raise BundleError(f"{where}: {size} bytes of constants inside the graph")
    return model.SerializeToString(deterministic=True), external


def _check_fields(message: Any, allowed: set[str], where: str) -> None:
    for descriptor, value in message.ListFields():
        if descriptor.name not in allowed:
            raise BundleError(f"{where}: field {descriptor.name!r} is not allowed in a bundle")
        if descriptor.type == descriptor.TYPE_STRING:
            # protobuf hands out text that is not UTF-8 as bytes.
            items = [value] if isinstance(value, str | bytes) else value
            if not all(isinstance(item, str) for item in items):
                raise BundleError(f"{where}: field {descriptor.name!r} is not UTF-8")


def _check_versions(model: Any, where: str) -> None:
    if not 1 <= model.ir_version <= MAX_IR:
        raise BundleError(f"{where}: ONNX IR version {model.ir_version}, expected up to {MAX_IR}")
    opsets = [(entry.domain, entry.version) for entry in model.opset_import]
    if len(opsets) != 1 or opsets[0][0] != "":
        domains = ", ".join(repr(domain[:40]) for domain, _ in opsets[:4])
        raise BundleError(f"{where}: operator domains {domains or 'none'}, expected only ''")
    if not MIN_OPSET <= opsets[0][1] <= MAX_OPSET:
        raise BundleError(f"{where}: opset {opsets[0][1]}, expected {MIN_OPSET} to {MAX_OPSET}")


def _check_values(values: Sequence[Any], ports: Sequence[Port], where: str) -> None:
    """Check names, element types and shapes of graph inputs or outputs."""
    for value in values:
        _check_fields(value, _VALUE_FIELDS, where)
    names = [value.name for value in values]
    expected = {port.name: port for port in ports}
    if sorted(names) != sorted(expected):
        shown = ", ".join(repr(name[:40]) for name in names[:12])
        raise BundleError(f"{where}s are {shown or 'none'}; expected {', '.join(expected)}")
    for value in values:
        port = expected[value.name]
        what = f"{where} {value.name!r}"
        if value.type.WhichOneof("value") != "tensor_type":
            raise BundleError(f"{what} is not a tensor")
        tensor = value.type.tensor_type
        if tensor.elem_type != _DTYPE_CODES[port.dtype]:
            raise BundleError(f"{what} has element type {tensor.elem_type}, not {port.dtype}")
        shape = [d.dim_param or d.dim_value for d in tensor.shape.dim]
        # A size that varies needs a name in the graph: a number there was frozen while tracing.
        fits = len(shape) == len(port.shape) and all(
            isinstance(found, str) if isinstance(wanted, str) else found == wanted
            for found, wanted in zip(shape, port.shape, strict=True)
        )
        if not fits:
            raise BundleError(f"{what} has shape {shape[:8]}, expected {list(port.shape)}")


def _check_node(node: Any, where: str) -> None:
    check_operator(node, where)
    what = f"{where}: {node.op_type} {node.name[:80]!r}"
    _check_fields(node, _NODE_FIELDS, what)
    for attribute in node.attribute:
        # Tensors and lists have been compared, but only where the type says that it is one.
        extra = {TENSOR: {"t"}, INTS: {"ints"}}.get(attribute.type, set())
        _check_fields(attribute, _ATTRIBUTE_FIELDS | extra, what)


def _check_initializers(
    initializers: Sequence[Any],
    tensors: Mapping[str, TensorSpec],
    inputs: set[str],
    shapes: set[str],
    where: str,
) -> tuple[tuple[str, ...], int]:
    """Return the names of the external initialisers and the bytes of the others."""
    external: list[str] = []
    seen = set(inputs)
    size = 0
    for tensor in initializers:
        what = f"{where}: initialiser {tensor.name[:80]!r}"
        if tensor.name in seen:
            raise BundleError(f"{what} stands twice")
        seen.add(tensor.name)
        if tensor.data_location == 0 and not tensor.external_data:
            size += _check_constant(tensor, what, is_shape=tensor.name in shapes)
            continue
        _check_fields(tensor, _EXTERNAL_FIELDS, what)
        entries = [(entry.key, entry.value) for entry in tensor.external_data]
        if tensor.data_location != 1 or entries != [("location", WEIGHTS_LOCATION)]:
            raise BundleError(f"{what} points outside the bundle")
        spec = tensors.get(tensor.name)
        if spec is None:
            raise BundleError(f"{what} is not among the weights of the bundle")
        if tuple(tensor.dims) != spec.shape or _DTYPE_CODES.get(spec.dtype) != tensor.data_type:
            raise BundleError(
                f"{what} has shape {list(tensor.dims)[:8]}, the weights have {list(spec.shape)}"
            )
        external.append(tensor.name)
    return tuple(external), size


def _check_constant(tensor: Any, what: str, *, is_shape: bool) -> int:
    """Check a tensor whose data lies in the graph and return its bytes."""
    from onnx.numpy_helper import to_array  # noqa: PLC0415 (start-up)

    _check_fields(tensor, _TENSOR_FIELDS, what)
    if any(d < 0 for d in tensor.dims) or len(tensor.dims) > 8:
        raise BundleError(f"{what}: malformed shape")
    if 8 * math.prod(tensor.dims) > MAX_CONSTANT or tensor.ByteSize() > MAX_CONSTANT:
        raise BundleError(f"{what}: constant of shape {list(tensor.dims)} is too large")
    if tensor.data_type not in (_FLOAT, _INT64):
        raise BundleError(f"{what}: constant of element type {tensor.data_type}")
    try:
        values = to_array(tensor)
    except (ValueError, TypeError, RuntimeError) as error:
        raise BundleError(f"{what}: malformed constant: {error}") from None
    if values.dtype == np.int64:
        # The ends of int64 mean "to the end" in Slice.
        sizes = [abs(int(v)) for v in values.reshape(-1) if -(2**63) < v < 2**63 - 1 and v]
        asked = math.prod(sizes) if is_shape else max(sizes, default=0)
        if asked > MAX_EXTENT:
            raise BundleError(f"{what}: integer constant {sizes[:8]} is too large")
    return int(tensor.ByteSize())

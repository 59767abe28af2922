"""The operators a bundle's graph may use, and how.

The list is the union over exports of all families, plans, integrators and readouts, now and in
earlier versions; a test compares. Attributes are held to the values an export writes, because
ONNX Runtime trusts some of them: a negative `batch_dims` of GatherND, or a `num_outputs` of Split
that is not the number of outputs, ends the process (1.32).
"""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from molscore.errors import BundleError

# onnx.AttributeProto.AttributeType
_FLOAT, _INT, _STRING, TENSOR, INTS = 1, 2, 3, 4, 7

_AXIS: Final = frozenset({0, 1})
_FLAG: Final = frozenset({0, 1})
_SLOPE: Final = 10.0  # largest size of a float attribute

Fill = tuple[int, tuple[int, ...], bytes]
"""A tensor of one element: data type, shape, bytes."""

Ints = tuple[int, ...]

Allowed = frozenset[int] | frozenset[bytes] | frozenset[Fill] | frozenset[Ints] | float
"""Integers, texts, tensors or lists an attribute may be, or the largest size of a float."""

# Where a maximum over no rows starts from: -FLT_MAX.
_LOWEST: Final[Fill] = (1, (1,), b"\xff\xff\x7f\xff")
# What marks a code in its one-hot row: 1.0.
_ONE: Final[Fill] = (1, (1,), b"\x00\x00\x80\x3f")


@dataclass(frozen=True)
class Operator:
    """What a node of one operator may look like.

    Attributes:
        inputs: fewest and most inputs.
        attributes: allowed values by name.
        required: attributes that must be there.
    """

    inputs: tuple[int, int] = (1, 1)
    attributes: dict[str, Allowed] = field(default_factory=dict)
    required: tuple[str, ...] = ()


_UNARY: Final = Operator()
_BINARY: Final = Operator(inputs=(2, 2))

OPERATORS: Final[dict[str, Operator]] = {
    "Add": _BINARY,
    "Cast": Operator(attributes={"to": frozenset({1, 7})}, required=("to",)),  # float, int64
    "Clip": Operator(inputs=(2, 3)),
    "Concat": Operator(inputs=(1, 8), attributes={"axis": _AXIS}, required=("axis",)),
    "ConstantOfShape": Operator(attributes={"value": frozenset({_LOWEST, _ONE})}),
    "CumSum": Operator(
        inputs=(2, 2),
        attributes={"exclusive": frozenset({0}), "reverse": frozenset({0})},
    ),
    "Div": _BINARY,
    "Elu": Operator(attributes={"alpha": _SLOPE}),
    "Exp": _UNARY,
    "Expand": _BINARY,
    "Gather": Operator(inputs=(2, 2), attributes={"axis": _AXIS}),
    "GatherElements": Operator(
        inputs=(2, 2), attributes={"axis": frozenset({0})}, required=("axis",)
    ),
    "GatherND": Operator(inputs=(2, 2), attributes={"batch_dims": frozenset({0})}),
    "Gemm": Operator(
        inputs=(2, 3),
        attributes={"alpha": _SLOPE, "beta": _SLOPE, "transA": frozenset({0}), "transB": _FLAG},
    ),
    "Greater": _BINARY,
    "LayerNormalization": Operator(
        inputs=(3, 3),
        attributes={"axis": frozenset({-1}), "epsilon": _SLOPE, "stash_type": frozenset({1})},
        required=("axis",),
    ),
    "LeakyRelu": Operator(attributes={"alpha": _SLOPE}),
    "MatMul": _BINARY,
    "Mul": _BINARY,
    "Reciprocal": _UNARY,
    "ReduceSum": Operator(
        inputs=(2, 2),
        attributes={"keepdims": _FLAG, "noop_with_empty_axes": frozenset({0})},
    ),
    "Relu": _UNARY,
    "Reshape": Operator(inputs=(2, 2), attributes={"allowzero": _FLAG}),
    "ScatterElements": Operator(
        inputs=(3, 3),
        attributes={"axis": _AXIS, "reduction": frozenset({b"max", b"min", b"add", b"none"})},
        required=("reduction",),
    ),
    "ScatterND": Operator(
        inputs=(3, 3),
        attributes={"reduction": frozenset({b"max", b"add"})},
        required=("reduction",),
    ),
    "Shape": Operator(attributes={"start": _FLAG, "end": frozenset({1, 2})}),
    "Sigmoid": _UNARY,
    "Slice": Operator(inputs=(5, 5)),
    "Split": Operator(
        attributes={"axis": _AXIS, "num_outputs": frozenset({2, 3, 4})},
        required=("num_outputs",),
    ),
    "Sqrt": _UNARY,
    "Squeeze": _BINARY,
    "Sub": _BINARY,
    "Tanh": _UNARY,
    "Transpose": Operator(attributes={"perm": frozenset({(1, 0)})}, required=("perm",)),
    "Unsqueeze": _BINARY,
}


def check_operator(node: Any, where: str) -> None:
    """Check domain, operator, attributes and the number of inputs and outputs of a node.

    Raises:
        BundleError: on anything that no export writes.
    """
    operator = None if node.domain != "" else OPERATORS.get(node.op_type)
    if operator is None:
        shown = f"{node.domain[:40]}::{node.op_type[:40]}" if node.domain else node.op_type[:40]
        raise BundleError(f"{where}: operator {shown!r} is not allowed in a bundle")
    what = f"{where}: {node.op_type} {node.name[:80]!r}"
    fewest, most = operator.inputs
    if not fewest <= len(node.input) <= most or "" in node.input[:fewest]:
        raise BundleError(f"{what} has {len(node.input)} inputs")
    values = {attribute.name: _value(attribute) for attribute in node.attribute}
    if len(values) != len(node.attribute) or not set(operator.required) <= set(values):
        raise BundleError(f"{what} has too few attributes, or one twice")
    for name, value in values.items():
        if name not in operator.attributes or not _fits(value, operator.attributes[name]):
            raise BundleError(f"{what}: attribute {name[:40]!r} is not allowed as it is")
    if len(node.output) != values.get("num_outputs", 1) or "" in node.output:
        raise BundleError(f"{what} has {len(node.output)} outputs")


def _value(attribute: Any) -> int | float | bytes | Fill | Ints | None:
    """Return the value of a plain attribute or of a small tensor, None for any other kind."""
    if attribute.type == TENSOR:
        return _fill(attribute.t)
    if attribute.type == INTS:
        return tuple(attribute.ints[:8])
    kinds: dict[int, int | float | bytes] = {
        _FLOAT: attribute.f,
        _INT: attribute.i,
        _STRING: attribute.s,
    }
    return kinds.get(attribute.type)


def _fill(tensor: Any) -> Fill | None:
    """Return a tensor that holds its data in `raw_data` and nothing else, None for any other."""
    if {field.name for field, _ in tensor.ListFields()} != {"dims", "data_type", "raw_data"}:
        return None
    return tensor.data_type, tuple(tensor.dims[:2]), tensor.raw_data[:5]


def _fits(value: int | float | bytes | Fill | Ints | None, allowed: Allowed) -> bool:
    if isinstance(allowed, frozenset):
        return not isinstance(value, float) and value in allowed
    return isinstance(value, float) and math.isfinite(value) and abs(value) <= allowed

from collections.abc import Callable
from typing import Any

import handmade_bundle
import numpy as np
import pytest
from handmade_bundle import external, graph, weights
from onnx import ModelProto, TensorProto, helper, numpy_helper

from molscore.bundle.onnx_scan import MAX_CONSTANT, MAX_EXTENT, scan
from molscore.bundle.onnx_session import open_session
from molscore.bundle.signature import input_ports, output_port
from molscore.bundle.tensors import TensorSpec
from molscore.errors import BundleError

TENSORS = {name: TensorSpec.of(array) for name, array in weights().items()}


def run_scan(raw: bytes) -> tuple[bytes, tuple[str, ...]]:
    return scan(raw, tensors=TENSORS, inputs=input_ports(0), outputs=(output_port(1),), where="m")


def integers(name: str, values: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


LOWEST = float(np.finfo(np.float32).min)


def fill(values: Any, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=dtype))


def branch(name: str) -> Any:
    value = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
    node = helper.make_node("Constant", [], [name], value_floats=[1.0])
    return helper.make_graph([node], name, [], [value])


def add_node(*args: Any, **kwargs: Any) -> Callable[[ModelProto], None]:
    return lambda model: model.graph.node.append(helper.make_node(*args, **kwargs))


def add_initializer(tensor: TensorProto) -> Callable[[ModelProto], None]:
    return lambda model: model.graph.initializer.append(tensor)


def replace_table(tensor: TensorProto) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        [old] = [t for t in model.graph.initializer if t.name == "table"]
        old.CopyFrom(tensor)

    return change


def reshape_to(sizes: list[int]) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        model.graph.initializer.append(integers("huge", sizes))
        model.graph.node.append(helper.make_node("ConstantOfShape", ["huge"], ["filled"]))

    return change


def set_dim(which: str, axis: int, value: int | str) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        for port in (*model.graph.input, *model.graph.output):
            if port.name == which:
                dim = port.type.tensor_type.shape.dim[axis]
                dim.Clear()
                setattr(dim, "dim_param" if isinstance(value, str) else "dim_value", value)

    return change


def at_path(location: str, **more: str) -> TensorProto:
    tensor = external("table", weights()["table"], location)
    for key, value in more.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def custom_function(model: ModelProto) -> None:
    model.functions.append(
        helper.make_function("local", "f", ["x"], ["y"], [], [helper.make_opsetid("", 18)])
    )


def clear_opset(model: ModelProto) -> None:
    del model.opset_import[:]


def wrong_element_type(model: ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


def sequence_input(model: ModelProto) -> None:
    model.graph.input[0].type.Clear()
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.INT64


HOSTILE: dict[str, tuple[Callable[[ModelProto], Any], str]] = {
    "If": (
        add_node("If", ["n_atoms"], ["y"], then_branch=branch("a"), else_branch=branch("b")),
        "operator 'If' is not allowed",
    ),
    "Loop": (add_node("Loop", ["", ""], ["y"], body=branch("a")), "operator 'Loop'"),
    "Scan": (add_node("Scan", ["n_atoms"], ["y"], body=branch("a")), "operator 'Scan'"),
    "a subgraph on an allowed operator": (
        add_node("Relu", ["rows"], ["y"], body=branch("a")),
        "attribute 'body' is not allowed",
    ),
    "a subgraph under the name of an attribute": (
        add_node("Gather", ["rows", "zero"], ["y"], axis=branch("a")),
        "attribute 'axis' is not allowed",
    ),
    "a value and a subgraph in one attribute": (
        lambda m: m.graph.node[0].attribute[0].g.CopyFrom(branch("a")),
        "field 'g' is not allowed",
    ),
    # Each of the next four ended the process with a signal in ONNX Runtime 1.32.
    "negative batch dimensions": (
        add_node("GatherND", ["table", "index"], ["y"], batch_dims=-9),
        "attribute 'batch_dims' is not allowed",
    ),
    "huge batch dimensions": (
        add_node("GatherND", ["table", "index"], ["y"], batch_dims=2**62),
        "attribute 'batch_dims' is not allowed",
    ),
    "a split into fewer than its outputs": (
        add_node("Split", ["rows"], ["a", "b", "c"], num_outputs=2),
        "has 3 outputs",
    ),
    "a split into more than its outputs": (
        add_node("Split", ["rows"], ["a"], num_outputs=3),
        "has 1 outputs",
    ),
    "a split that does not say into what": (
        add_node("Split", ["rows"], ["a", "b"]),
        "too few attributes",
    ),
    "an attribute that stands twice": (
        lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]),
        "one twice",
    ),
    "an attribute of another kind": (
        lambda m: setattr(m.graph.node[0].attribute[0], "type", 1),
        "attribute 'axis' is not allowed",
    ),
    "a transposition that turns more than a matrix": (
        add_node("Transpose", ["rows"], ["y"], perm=[0, 1, 2]),
        "attribute 'perm' is not allowed",
    ),
    "a transposition out of bounds": (
        add_node("Transpose", ["rows"], ["y"], perm=[1, 2**62]),
        "attribute 'perm' is not allowed",
    ),
    "a transposition that does not say how": (
        add_node("Transpose", ["rows"], ["y"]),
        "too few attributes",
    ),
    "a list under the name of a number": (
        add_node("Gather", ["rows", "zero"], ["y"], axis=[0]),
        "attribute 'axis' is not allowed",
    ),
    "a number and a list in one attribute": (
        lambda m: m.graph.node[0].attribute[0].ints.append(1),
        "field 'ints' is not allowed",
    ),
    "a product of what is scattered": (
        add_node("ScatterElements", ["zeros", "index", "rows"], ["y"], axis=0, reduction="mul"),
        "attribute 'reduction' is not allowed",
    ),
    "a scatter along a negative axis": (
        add_node("ScatterElements", ["zeros", "index", "rows"], ["y"], axis=-1, reduction="none"),
        "attribute 'axis' is not allowed",
    ),
    "a tensor that no export fills with": (
        add_node("ConstantOfShape", ["shape"], ["y"], value=fill([2.0])),
        "attribute 'value' is not allowed",
    ),
    "a fill of another type": (
        add_node("ConstantOfShape", ["shape"], ["y"], value=fill([1], np.int64)),
        "attribute 'value' is not allowed",
    ),
    "a fill of two numbers": (
        add_node("ConstantOfShape", ["shape"], ["y"], value=fill([LOWEST, LOWEST])),
        "attribute 'value' is not allowed",
    ),
    "a fill with data outside": (
        add_node("ConstantOfShape", ["shape"], ["y"], value=at_path("/etc/passwd")),
        "attribute 'value' is not allowed",
    ),
    "a fill under the name of a number": (
        add_node("Gather", ["rows", "zero"], ["y"], axis=fill([LOWEST])),
        "attribute 'axis' is not allowed",
    ),
    "a number and a tensor in one attribute": (
        lambda m: m.graph.node[0].attribute[0].t.CopyFrom(fill([LOWEST])),
        "field 't' is not allowed",
    ),
    "a norm along another axis": (
        add_node("LayerNormalization", ["rows", "table", "table"], ["y"], axis=0),
        "attribute 'axis' is not allowed",
    ),
    "a norm with its statistics as outputs": (
        add_node("LayerNormalization", ["rows", "table", "table"], ["y", "m", "s"], axis=-1),
        "3 outputs",
    ),
    "a backward sum": (
        add_node("CumSum", ["n_atoms", "zero"], ["y"], reverse=1),
        "attribute 'reverse' is not allowed",
    ),
    "an attribute that refers to a function": (
        lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "x"),
        "field 'ref_attr_name'",
    ),
    "a slope that is no number": (
        add_node("Elu", ["rows"], ["y"], alpha=float("nan")),
        "attribute 'alpha' is not allowed",
    ),
    "too few inputs": (add_node("ScatterND", ["zeros"], ["y"], reduction="add"), "1 inputs"),
    "an input left out": (
        add_node("ScatterND", ["zeros", "", "rows"], ["y"], reduction="add"),
        "3 inputs",
    ),
    "a custom domain": (
        add_node("Add", ["rows", "rows"], ["y"], domain="com.evil"),
        "'com.evil::Add'",
    ),
    "a contrib operator": (add_node("Gelu", ["rows"], ["y"], domain="com.microsoft"), "Gelu"),
    "an operator outside the list": (add_node("StringConcat", ["a", "b"], ["y"]), "StringConcat"),
    "random numbers": (add_node("RandomNormal", [], ["y"], shape=[1]), "RandomNormal"),
    "a function": (custom_function, "field 'functions'"),
    "an import of another domain": (
        lambda m: m.opset_import.append(helper.make_opsetid("com.evil", 1)),
        "operator domains '', 'com.evil'",
    ),
    "no opset": (clear_opset, "operator domains none"),
    "an old opset": (lambda m: setattr(m.opset_import[0], "version", 9), "opset 9, expected 18"),
    "a future opset": (lambda m: setattr(m.opset_import[0], "version", 99), "opset 99"),
    "a future IR": (lambda m: setattr(m, "ir_version", 99), "IR version 99"),
    "training info": (lambda m: m.training_info.add(), "field 'training_info'"),
    "metadata": (
        lambda m: m.metadata_props.add(key="location", value="/etc/passwd"),
        "field 'metadata_props'",
    ),
    "metadata on a node": (
        lambda m: m.graph.node[0].metadata_props.add(key="a", value="b"),
        "field 'metadata_props'",
    ),
    "sparse weights": (lambda m: m.graph.sparse_initializer.add(), "field 'sparse_initializer'"),
    "quantisation notes": (
        lambda m: m.graph.quantization_annotation.add(),
        "field 'quantization_annotation'",
    ),
    "weights in /etc/passwd": (replace_table(at_path("/etc/passwd")), "points outside the bundle"),
    "weights in a parent": (replace_table(at_path("../secret")), "points outside the bundle"),
    "weights at an offset": (
        replace_table(at_path("weights.safetensors", offset="8")),
        "points outside the bundle",
    ),
    "external entries without the mark": (
        lambda m: m.graph.initializer[0].external_data.add(key="location", value="/etc/passwd"),
        "field 'int64_data'|field 'raw_data'",
    ),
    "weights that are not there": (
        add_initializer(external("stranger", weights()["table"])),
        "'stranger' is not among the weights",
    ),
    "weights of another shape": (
        replace_table(external("table", np.zeros((1 << 20, 1), np.float32))),
        "the weights have",
    ),
    "an initialiser that stands twice": (add_initializer(integers("zero", 0)), "stands twice"),
    "an initialiser in place of an input": (
        add_initializer(integers("n_atoms", [1])),
        "stands twice",
    ),
    "a large constant": (
        add_initializer(integers("big", np.zeros(MAX_CONSTANT // 8 + 1))),
        "is too large",
    ),
    "many constants": (
        lambda m: [m.graph.initializer.append(integers(f"c{i}", [0] * 8000)) for i in range(20)],
        "bytes of constants inside the graph",
    ),
    "a constant of huge dimensions and no data": (
        add_initializer(TensorProto(name="big", data_type=7, dims=[1 << 40, 1 << 40])),
        "is too large",
    ),
    "a constant with negative dimensions": (
        add_initializer(TensorProto(name="big", data_type=7, dims=[-1])),
        "malformed shape",
    ),
    "a constant without its data": (
        add_initializer(TensorProto(name="big", data_type=7, dims=[4])),
        "malformed constant",
    ),
    "a constant of text": (
        add_initializer(numpy_helper.from_array(np.array(["a"], dtype=object), "text")),
        "field 'string_data'|element type 8",
    ),
    "a huge shape": (reshape_to([1 << 20, 1 << 20]), "is too large"),
    "a huge number": (add_initializer(integers("n", [MAX_EXTENT + 1])), "is too large"),
    "another input": (
        lambda m: m.graph.input.append(
            helper.make_tensor_value_info("extra", TensorProto.INT64, [1])
        ),
        "inputs are .*'extra'",
    ),
    "a missing input": (lambda m: m.graph.input.pop(), "expected atom_codes"),
    "another output": (
        lambda m: m.graph.output.append(
            helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["atoms", 1])
        ),
        "outputs are 'prediction', 'rows'",
    ),
    "a frozen input": (set_dim("graph_id", 0, 7), r"'graph_id' has shape \[7\]"),
    "a frozen output": (set_dim("prediction", 0, 7), r"'prediction' has shape \[7, 1\]"),
    "other features": (set_dim("atom_codes", 1, 4), "'atom_codes' has shape"),
    "a width without a number": (set_dim("prediction", 1, "t"), "'prediction' has shape"),
    "text as input": (wrong_element_type, "element type 8, not int64"),
    "a sequence as input": (sequence_input, "is not a tensor"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_an_export_does_not_write_is_refused(name: str) -> None:
    change, words = HOSTILE[name]
    model = graph()
    change(model)
    with pytest.raises(BundleError, match=words):
        run_scan(model.SerializeToString())


def test_an_export_passes_and_names_its_weights() -> None:
    clean, names = run_scan(graph().SerializeToString())
    assert names == ("table",)
    assert ModelProto.FromString(clean) == graph()


@pytest.mark.parametrize(
    "add",
    [
        add_node("ConstantOfShape", ["shape"], ["y"], value=fill([LOWEST])),
        add_node("ConstantOfShape", ["shape"], ["y"], value=fill([1.0])),
        add_node("Transpose", ["rows"], ["y"], perm=[1, 0]),
        add_node("ScatterElements", ["zeros", "index", "rows"], ["y"], axis=1, reduction="none"),
    ],
)
def test_what_an_export_writes_passes(add: Callable[[ModelProto], None]) -> None:
    model = graph()
    add(model)
    clean, _ = run_scan(model.SerializeToString())
    assert ModelProto.FromString(clean) == model


@pytest.mark.parametrize("raw", [b"", b"\xff" * 64, b"not a model", b"\x08" * 1000])
def test_what_is_no_model_is_refused(raw: bytes) -> None:
    with pytest.raises(BundleError, match="m: "):
        run_scan(raw)


def test_unknown_fields_do_not_reach_the_session() -> None:
    hidden = bytes([0xFA, 0x7F, 3]) + b"abc"  # field 2047, three bytes
    clean, _ = run_scan(graph().SerializeToString() + hidden)
    assert hidden not in clean


def test_a_deeply_nested_model_is_refused() -> None:
    inner = b""
    for _ in range(500):  # graph(7) -> node(1) -> attribute(5) -> g(6) -> node(1) ...
        inner = _field(6, inner)
        inner = _field(1, _field(5, inner))
    with pytest.raises(BundleError, match="m: "):
        run_scan(_field(7, inner))


def _field(number: int, data: bytes) -> bytes:
    length, size = len(data), b""
    while True:
        size += bytes([length & 127 | (128 if length > 127 else 0)])
        length >>= 7
        if not length:
            return bytes([number << 3 | 2]) + size + data


def test_injected_weights_are_bit_equal_to_weights_inside() -> None:
    batch = {
        "atom_codes": np.arange(18).reshape(2, 9) % 4,
        "bond_codes": np.zeros((0, 3), np.int64),
        "edge_index": np.zeros((2, 0), np.int64),
        "graph_id": np.array([0, 1]),
        "n_atoms": np.array([1, 1]),
    }
    inside = graph()
    [table] = [t for t in inside.graph.initializer if t.name == "table"]
    table.CopyFrom(numpy_helper.from_array(weights()["table"], "table"))
    a = open_session(graph().SerializeToString(), weights()).run(batch)
    b = open_session(inside.SerializeToString(), {}).run(batch)
    assert a.tobytes() == b.tobytes()


def test_nothing_is_read_from_the_working_directory(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the external location's name must not stand in for the bundle's weights."""
    decoy = np.full_like(weights()["table"], 9.0)
    (tmp_path / "weights.safetensors").write_bytes(decoy.tobytes())
    monkeypatch.chdir(tmp_path)
    session = open_session(graph().SerializeToString(), weights())
    batch = {
        "atom_codes": np.zeros((1, 9), np.int64),
        "bond_codes": np.zeros((0, 3), np.int64),
        "edge_index": np.zeros((2, 0), np.int64),
        "graph_id": np.array([0]),
        "n_atoms": np.array([1]),
    }
    assert session.run(batch)[0, 0] == weights()["table"][0, 0]
    assert handmade_bundle.expected(["H"]) == pytest.approx(0.01)

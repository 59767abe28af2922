"""The exported graph is the model: on sizes never traced, and for any weights."""

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from exported_bundle import arrays_of, expert, skeleton
from onnx import ModelProto, TensorProto, numpy_helper

from molscore.bundle import export
from molscore.bundle.export import export_skeleton
from molscore.bundle.onnx_operators import OPERATORS
from molscore.bundle.onnx_scan import scan
from molscore.bundle.onnx_session import open_session
from molscore.bundle.signature import input_ports, output_port
from molscore.bundle.tensors import TensorSpec
from molscore.bundle.tracing import TRACED_SIZES, example_arrays
from molscore.bundle.trees import tree_skeleton
from molscore.errors import ExportError
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model

CONFIG = ModelConfig(width=16)


def torch_output(model: torch.nn.Module, batch: Any, descriptors: Any = None) -> np.ndarray:
    with torch.inference_mode():
        return model(GraphBatch.from_arrays(batch, descriptors)).numpy()


def onnx_output(raw: bytes, model: Any, batch: Any, descriptors: Any = None) -> np.ndarray:
    inputs = dict(batch._asdict())
    if descriptors is not None:
        inputs["descriptors"] = descriptors
    return open_session(raw, arrays_of(model)).run(inputs)


@pytest.mark.parametrize("sizes", [(1,), (1,) * 5, (2,), (400,), (1, 400, 3), (9,) * 1000])
def test_one_skeleton_serves_every_expert_and_size(sizes: tuple[int, ...]) -> None:
    raw = skeleton(CONFIG, 2, 0)
    assert sizes != TRACED_SIZES
    batch, _ = example_arrays(sizes, seed=5)
    for seed in (1, 2):
        model = expert(CONFIG, 2, 0, seed)
        np.testing.assert_allclose(
            onnx_output(raw, model, batch), torch_output(model, batch), rtol=1e-4, atol=1e-5
        )


def test_weights_are_outside_and_named_like_the_state_dict() -> None:
    model = build_model(CONFIG, 2)
    proto = ModelProto.FromString(skeleton(CONFIG, 2, 0))
    outside = {t.name for t in proto.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    # The embedding of atoms at the end and other parts may be unused; weights may not be inside.
    assert outside <= set(arrays_of(model))
    assert {"head.out.bias", "head.shift", "head.scale"} <= outside
    inside = [t for t in proto.graph.initializer if t.name not in outside]
    assert all(np.prod(t.dims) <= 1 for t in inside if t.data_type == TensorProto.FLOAT)
    assert len(proto.SerializeToString()) < 40_000


def test_a_skeleton_passes_the_scan() -> None:
    tensors = {n: TensorSpec.of(a) for n, a in arrays_of(build_model(CONFIG, 2)).items()}
    scan(skeleton(CONFIG, 2, 0), tensors=tensors, inputs=input_ports(0), outputs=[output_port(2)])


def test_nothing_of_this_machine_is_in_the_graph() -> None:
    raw = skeleton(CONFIG, 2, 0)
    for text in (b".py", b"/home", b"/usr", b"/root", b"molscore/", b"stack_trace"):
        assert text not in raw


def test_injected_weights_are_bit_equal_to_weights_inside() -> None:
    raw, model = skeleton(CONFIG, 2, 0), expert(CONFIG, 2, 0, 3)
    inside = ModelProto.FromString(raw)
    weights = arrays_of(model)
    for tensor in inside.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    batch, _ = example_arrays((1, 5, 40))
    a = open_session(raw, weights).run(dict(batch._asdict()))
    b = open_session(inside.SerializeToString(), {}).run(dict(batch._asdict()))
    assert a.tobytes() == b.tobytes()


@pytest.mark.slow
def test_exporting_leaves_the_model_and_the_generators_alone() -> None:
    model = build_model(CONFIG, 2).train()
    before = copy.deepcopy(arrays_of(model))
    torch.manual_seed(0)
    state = torch.get_rng_state()
    raw = export_skeleton(model)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    for name, array in arrays_of(model).items():
        np.testing.assert_array_equal(array, before[name])
    # A fresh model has equal tensors (biases at zero), which the exporter would merge.
    assert raw == skeleton(CONFIG, 2, 0)


@pytest.mark.slow
def test_exporting_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export._trace(build_model(CONFIG, 2).eval(), 0)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_a_frozen_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `len(x)` in a model would do: the number traced becomes a constant."""
    frozen = ModelProto.FromString(skeleton(CONFIG, 2, 0))
    frozen.graph.input[3].type.tensor_type.shape.dim[0].dim_value = 21
    monkeypatch.setattr(export, "_trace", lambda *args: frozen)
    with pytest.raises(ExportError, match="axis 0 of input 'graph_id' was frozen"):
        export_skeleton(build_model(CONFIG, 2))


def test_a_graph_that_disagrees_with_torch_is_refused() -> None:
    model = expert(CONFIG, 2, 0, 1)
    other = ModelProto.FromString(skeleton(CONFIG, 2, 0))
    for node in other.graph.node:
        if node.op_type == "LeakyRelu":
            node.attribute[0].f = 0.7
    with pytest.raises(ExportError, match=r"disagree on molecules of .* largest difference"):
        export._compare(model, other.SerializeToString(), 0)


def test_what_torch_cannot_export_is_an_export_error() -> None:
    model = build_model(CONFIG, 2)
    embed = model.embed
    model.embed = lambda batch: embed(batch) * float(batch.n_atoms.sum())  # type: ignore[method-assign]
    with pytest.raises(ExportError, match="torch cannot export this model"):
        export_skeleton(model)


COMBINATIONS = [
    # Pairwise over block, plan, integrator, readout, descriptors; some with a head plan.
    ("dmpnn", "score", "euler", "virtual-node", 0),
    ("dmpnn", "skip05", "heun", "sum", 3),
    ("dmpnn", "native", "euler", "mean", 0),
    ("dmpnn", "residual", "euler", "virtual-node", 3),
    ("dmpnn", "1x2@learned", "rk4", "mean", 3),
    ("dmpnn", "2x2@1/K", "midpoint", "sum", 0),
    ("dmpnn", "1x2@0.5,1x2+", "euler", "virtual-node", 0),
    ("attentivefp", "score", "euler", "virtual-node", 3),
    ("attentivefp", "skip05", "midpoint", "mean", 0),
    ("attentivefp", "native", "euler", "sum", 3),
    ("attentivefp", "residual", "euler", "mean", 0),
    ("attentivefp", "1x2@learned", "heun", "sum", 0),
    ("attentivefp", "1x2@1/K", "rk4", "virtual-node", 0),
    ("mlp", "score", "euler", "sum", 3),
    ("mlp", "native", "euler", "sum", 3, "native"),
    ("mlp", "1x2@learned", "rk4", "sum", 3, "1x2@learned"),
    ("mlp", "1x2@0.5,1x2+", "heun", "sum", 3, "1x2@1/K,1x1+"),
    ("dmpnn", "score", "midpoint", "virtual-node", 3, "score"),
    ("attentivefp", "score", "euler", "sum", 0, "residual"),
    # One each: what their blocks export to does not depend on the plan around them.
    ("gcn", "score", "euler", "sum", 3),
    ("gat", "1x2@0.5", "heun", "virtual-node", 0),
    ("gatv2", "2x1@learned", "euler", "mean", 3),
    ("gine", "native", "euler", "virtual-node", 0),
    ("mpnn", "1x2@1/K", "midpoint", "sum", 0),
    ("transformer", "1x2+", "euler", "mean", 3),
]
_seen_ops: set[str] = set()


@pytest.mark.slow
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda c: "-".join(map(str, c)))
def test_every_kind_of_model_exports_and_passes_the_scan(combination: Any) -> None:
    block, plan, integrator, readout, n_descriptors, *head_plan = combination
    config = ModelConfig(
        block=block,
        plan=plan,
        integrator=integrator,
        readout=readout,
        width=16,
        descriptors="rdkit" if n_descriptors else "none",
        head_plan=head_plan[0] if head_plan else "none",
    )
    raw = skeleton(config, 2, n_descriptors)
    tensors = {
        n: TensorSpec.of(a) for n, a in arrays_of(build_model(config, 2, n_descriptors)).items()
    }
    scan(raw, tensors=tensors, inputs=input_ports(n_descriptors), outputs=[output_port(2)])
    _seen_ops.update(node.op_type for node in ModelProto.FromString(raw).graph.node)
    model = expert(config, 2, n_descriptors, 1)
    for sizes in ((1,), (1, 1), (60, 1, 2), (400,), (3, 1)):
        batch, descriptors = example_arrays(sizes, n_descriptors, seed=3)
        np.testing.assert_allclose(
            onnx_output(raw, model, batch, descriptors),
            torch_output(model, batch, descriptors),
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.slow
def test_no_operator_is_allowed_that_no_model_needs() -> None:
    if len(_seen_ops) < 10:
        pytest.skip("runs behind the exports of every kind of model")
    trees = {node.op_type for node in ModelProto.FromString(tree_skeleton(1, 1, 1)).graph.node}
    # A blend subtracts; skeletons of earlier bundles look codes up.
    blend, earlier = {"Sub"}, {"GatherND"}
    assert _seen_ops | trees | blend | earlier == set(OPERATORS)

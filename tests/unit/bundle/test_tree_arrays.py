"""Trees as arrays: what they give, and what of a stranger's is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handmade_bundle import graph, weights
from onnx import ModelProto, helper, numpy_helper
from tree_bundle import (
    ITERATIONS,
    NAMES,
    blended_bundle,
    onnx_tree_operator,
    scaler,
    tree_bundle,
    trees,
)

from molscore.bundle.onnx_session import open_session, open_standalone
from molscore.bundle.reader import parse_bundle
from molscore.bundle.standalone import compose_standalone, standalone_inputs
from molscore.bundle.tracing import example_arrays
from molscore.bundle.trees import (
    DEPTH,
    FEATURE,
    NEVER,
    SHIFT,
    THRESHOLD,
    VALUES,
    check_trees,
    evaluate_trees,
    tree_skeleton,
)
from molscore.errors import BundleError, ConfigError
from molscore.predict.core import predict_chunk
from molscore.predict.engine import OnnxEngine, TorchEngine

SMILES = ["CCO", "c1ccccc1", "[Na+].[Cl-]", "nonsense", "C" * 60, "[Fe]", "CC(=O)O"]


def by_hand(arrays: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """Walk every tree question by question."""
    n_targets, n_trees = len(arrays[SHIFT]), arrays[VALUES].shape[1]
    out = np.tile(arrays[SHIFT].astype(float), (len(x), 1))
    for row, d in enumerate(x):
        for t in range(n_trees):
            leaf = 0
            for level in range(DEPTH):
                at = level * n_trees + t
                leaf += 2**level * bool(d[arrays[FEATURE][at]] > arrays[THRESHOLD][at])
            out[row, t // (n_trees // n_targets)] += arrays[VALUES][leaf, t]
    return out


def test_graph_arrays_and_a_walk_by_hand_agree() -> None:
    arrays = trees()
    batch, x = example_arrays((1, 3, 2, 40), len(NAMES), seed=2)
    assert x is not None
    x[0] = arrays[THRESHOLD][0]  # equal is not above
    wanted = by_hand(arrays, x)
    np.testing.assert_allclose(evaluate_trees(arrays, x), wanted, rtol=1e-6)
    session = open_session(tree_skeleton(2, ITERATIONS, len(NAMES)), arrays)
    found = session.run({**batch._asdict(), "descriptors": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_more_rows_than_fit_at_a_time_come_out_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = trees()
    x = np.random.default_rng(1).standard_normal((50, len(NAMES))).astype(np.float32)
    whole = evaluate_trees(arrays, x)
    for answers in (1, 7 * DEPTH * N):
        monkeypatch.setattr("molscore.bundle.trees._ANSWERS", answers)
        assert np.array_equal(whole, evaluate_trees(arrays, x))
    assert evaluate_trees(arrays, x[:0]).shape == (0, 2)


def test_a_question_of_padding_is_never_answered_with_yes() -> None:
    arrays = trees() | {THRESHOLD: np.full(DEPTH * 2 * ITERATIONS, NEVER, dtype=np.float32)}
    x = np.full((1, len(NAMES)), 10.0, dtype=np.float32)
    wanted = arrays[SHIFT] + arrays[VALUES][0].reshape(2, -1).sum(axis=1)
    np.testing.assert_allclose(evaluate_trees(arrays, x)[0], wanted, rtol=1e-6)


@pytest.mark.parametrize("raw", [tree_bundle(), blended_bundle((0.3, 0.8))], ids=["trees", "blend"])
def test_a_prediction_does_not_depend_on_its_neighbours(raw: bytes) -> None:
    bundle = parse_bundle(raw, where="x")
    engine = OnnxEngine(bundle)
    whole = predict_chunk(SMILES, 0, bundle, engine)
    assert whole.status == ["ok", "ok", "ok", "invalid_smiles", "ok", "ok", "ok"]
    for i, smiles in enumerate(SMILES):
        alone = predict_chunk([smiles], i, bundle, engine)
        np.testing.assert_allclose(alone.values[0], whole.values[i], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(alone.sd[0], whole.sd[i], rtol=1e-5, atol=1e-6)
    backwards = predict_chunk(SMILES[::-1], 0, bundle, engine)
    np.testing.assert_allclose(backwards.values[::-1], whole.values, rtol=1e-5, atol=1e-6)


def test_each_expert_of_a_blend_is_blended_before_the_experts_are_averaged() -> None:
    share = np.array([0.3, 0.8])
    bundle = parse_bundle(blended_bundle((0.3, 0.8)), where="x")
    batch, numbers = example_arrays((1, 4, 9), len(NAMES), seed=5)
    x = scaler().transform(100 * np.asarray(numbers, dtype=np.float64))
    [found] = OnnxEngine(bundle).run([(batch, np.stack([x, x]))])
    for i in range(2):
        session = open_session(graph(2).SerializeToString(), weights(2, expert=i))
        network = session.run(dict(batch._asdict()))
        wanted = share * network + (1 - share) * evaluate_trees(trees(i), x)
        np.testing.assert_allclose(found[i], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("raw", [tree_bundle(), blended_bundle((0.3, 0.8))], ids=["trees", "blend"])
def test_all_experts_become_one_graph_for_other_programs(raw: bytes) -> None:
    bundle = parse_bundle(raw, where="x")
    run = open_standalone(compose_standalone(bundle))  # which compares with the bundle itself
    batch, numbers = example_arrays((2, 1), len(NAMES), seed=5)
    values = np.asarray(numbers, dtype=np.float64)
    values[0, 0] = np.nan
    inputs = {**batch._asdict(), "descriptors": values}
    found = run({port.name: inputs[port.name] for port in standalone_inputs(bundle.manifest)})
    assert np.isfinite(found["mean"]).all()
    assert ((found["mean"][:, 1] > 0) & (found["mean"][:, 1] < 1)).all()


def test_the_torch_engine_says_that_it_cannot_run_trees() -> None:
    with pytest.raises(ConfigError, match=r"trees in m\.molscore: use --engine onnx"):
        TorchEngine(parse_bundle(tree_bundle(), where="m.molscore"), "cpu")


def changed(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.__setitem__(name, value)


def asking_for(column: int) -> Callable[[dict[str, Any]], None]:
    def change(arrays: dict[str, Any]) -> None:
        arrays[FEATURE][3] = column

    return change


N = 2 * ITERATIONS
HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a descriptor behind the last": (asking_for(len(NAMES)), "descriptor that is not there"),
    "a negative descriptor": (asking_for(-1), "descriptor that is not there"),
    "a descriptor far away": (asking_for(2**62), "descriptor that is not there"),
    "too few questions": (
        changed(FEATURE, np.zeros(DEPTH * N - 1, dtype=np.int64)),
        r"'trees/feature' is int64 \[59\], expected int64 \[60\]",
    ),
    "too many thresholds": (
        changed(THRESHOLD, np.zeros(DEPTH * N + 1, dtype=np.float32)),
        r"'trees/threshold' is float32 \[61\]",
    ),
    "deeper trees": (
        changed(VALUES, np.zeros((2 ** (DEPTH + 1), N), dtype=np.float32)),
        r"'trees/feature' is int64 \[60\], expected int64 \[120\]",
    ),
    "no trees": (changed(VALUES, np.zeros((2**DEPTH, 0), dtype=np.float32)), "0 trees"),
    "trees without end": (
        changed(VALUES, np.broadcast_to(np.float32(0), (2**DEPTH, 4_000_000))),
        "4000000 trees, expected 1 to 100000",
    ),
    "questions that are no integers": (
        changed(FEATURE, np.zeros(DEPTH * N, dtype=np.float32)),
        "expected int64",
    ),
    "shifts of other targets": (changed(SHIFT, np.zeros(3, np.float32)), r"expected float32 \[2\]"),
    "leaves that are missing": (lambda a: a.pop(VALUES), "'trees/values' is missing"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_trees_that_make_no_sense_are_refused(name: str) -> None:
    change, words = HOSTILE[name]
    arrays = trees()
    change(arrays)
    with pytest.raises(BundleError, match=words):
        check_trees(arrays, 2, len(NAMES), where="x")


@pytest.mark.parametrize("name", ["a negative descriptor", "too few questions"])
def test_a_bundle_of_such_trees_is_refused(name: str) -> None:
    arrays = trees(1)
    HOSTILE[name][0](arrays)
    with pytest.raises(BundleError, match=r"expert ?1"):
        tree_bundle(experts=[trees(0), arrays])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_leaves_that_are_no_numbers_are_refused(bad: float) -> None:
    arrays = trees()
    arrays[VALUES][0, 0] = bad
    with pytest.raises(BundleError, match="NaN or infinite"):
        tree_bundle(experts=[arrays], arrays={})


def test_the_tree_operator_of_onnx_is_refused_whatever_is_in_it() -> None:
    with pytest.raises(BundleError, match=r"'ai\.onnx\.ml::TreeEnsembleRegressor'"):
        tree_bundle(onnx=onnx_tree_operator().SerializeToString())
    importing = ModelProto.FromString(tree_skeleton(2, ITERATIONS, len(NAMES)))
    importing.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    with pytest.raises(BundleError, match=r"operator domains '', 'ai\.onnx\.ml'"):
        tree_bundle(onnx=importing.SerializeToString())


def in_a_circle(model: ModelProto) -> None:
    [gather] = [n for n in model.graph.node if n.op_type == "GatherElements"]
    gather.input[1] = "trees/total"


def another_cast(model: ModelProto) -> None:
    next(n for n in model.graph.node if n.op_type == "Cast").attribute[0].i = 8  # text


def leaves_along_the_trees(model: ModelProto) -> None:
    next(n for n in model.graph.node if n.op_type == "GatherElements").attribute[0].i = -1


@pytest.mark.parametrize("change", [another_cast, leaves_along_the_trees])
def test_a_graph_that_no_export_writes_is_refused(change: Callable[[ModelProto], None]) -> None:
    model = ModelProto.FromString(tree_skeleton(2, ITERATIONS, len(NAMES)))
    change(model)
    with pytest.raises(BundleError, match="is not allowed as it is"):
        tree_bundle(onnx=model.SerializeToString())


def test_a_graph_in_a_circle_is_refused_by_the_runtime() -> None:
    model = ModelProto.FromString(tree_skeleton(2, ITERATIONS, len(NAMES)))
    in_a_circle(model)
    bundle = parse_bundle(tree_bundle(onnx=model.SerializeToString()), where="x")
    with pytest.raises(BundleError, match="ONNX Runtime refuses the graph"):
        OnnxEngine(bundle)


@pytest.mark.parametrize("power", [1e3, -1e3, 1e30, np.float32(-3e38)])
def test_leaves_outside_the_arrays_cannot_be_reached(power: float) -> None:
    """A forged graph may weigh its questions wrongly; the runtime then says so, row by row."""
    model = ModelProto.FromString(tree_skeleton(2, ITERATIONS, len(NAMES)))
    [old] = [t for t in model.graph.initializer if t.name == "trees/powers"]
    new = np.full((DEPTH, 1), power, dtype=np.float32)
    old.CopyFrom(numpy_helper.from_array(new, "trees/powers"))
    arrays = trees() | {THRESHOLD: np.full(DEPTH * N, -11.0, dtype=np.float32)}
    raw = tree_bundle(onnx=model.SerializeToString(), experts=[arrays, arrays])
    bundle = parse_bundle(raw, where="x")
    done = predict_chunk(["CCO"], 0, bundle, OnnxEngine(bundle))
    assert done.status == ["failed"]
    assert "the engine failed" in done.error[0]

"""Predictions that compute equal surroundings once."""

import numpy as np
import pytest
from exported_bundle import exported

from molscore.bundle.reader import Bundle, parse_bundle
from molscore.bundle.sharing import n_rounds, sharing_graph
from molscore.bundle.tracing import example_arrays
from molscore.errors import MolscoreError
from molscore.nn.config import ModelConfig
from molscore.predict import engine
from molscore.predict.core import predict_chunk
from molscore.predict.engine import (
    OnnxEngine,
    SharingEngine,
    _groups,
    are_close,
    most_atoms,
)

SMILES = [
    *["CC(=O)Nc1ccc(O)cc1", "O", "[Na+].[Cl-]", "c1ccccc1-c1ccccc1", "C" * 60, "CC(C)CO"] * 24,
    *[f"{'C' * n}c1ccc({end})cc1" for n in range(1, 12) for end in ("O", "N", "Cl", "F", "C#N")],
]
PLANS = (
    "score",
    "native",
    "skip05",
    "1x60@0.9",
    "1x2@0.5,1x2@0.5",
    "1x5@1/K",
    "1x7@0.95",
    "2x2@1,1x1@0.3",
)


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_LEAST_WIDTH", 0)


def loaded(**changes: object) -> Bundle:
    return parse_bundle(exported(**changes), where="x")


def plain(bundle: Bundle) -> OnnxEngine:
    made = OnnxEngine(bundle)
    made._may_share = False
    return made


@pytest.mark.parametrize("plan", PLANS)
def test_the_values_are_those_of_the_bundle(plan: str) -> None:
    bundle = loaded(plan=plan)
    shared = OnnxEngine(bundle)
    found = predict_chunk(SMILES, 0, bundle, shared)
    assert shared._may_share
    assert shared._sharing is not None
    wanted = predict_chunk(SMILES, 0, bundle, plain(bundle))
    assert found.status == wanted.status == ["ok"] * len(SMILES)
    np.testing.assert_allclose(found.values, wanted.values, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found.sd, wanted.sd, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("atoms", [1, 100, 10**6])
def test_groups_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch, atoms: int) -> None:
    monkeypatch.setattr(engine, "most_atoms", lambda n_experts, width: atoms)
    bundle = loaded(plan="score")
    found = predict_chunk(SMILES, 0, bundle, OnnxEngine(bundle))
    wanted = predict_chunk(SMILES, 0, bundle, plain(bundle))
    np.testing.assert_allclose(found.values, wanted.values, rtol=2e-5, atol=1e-6)


def test_a_value_does_not_depend_on_its_neighbours() -> None:
    bundle = loaded(plan="score")
    shared = OnnxEngine(bundle)
    whole = predict_chunk(SMILES, 0, bundle, shared)
    backwards = predict_chunk(SMILES[::-1], 0, bundle, shared)
    np.testing.assert_allclose(backwards.values[::-1], whole.values, rtol=2e-5, atol=1e-6)
    bad = predict_chunk([*SMILES, "C1CC", ""], 0, bundle, shared)
    np.testing.assert_allclose(bad.values[:-2], whole.values, rtol=2e-5, atol=1e-6)
    assert bad.status[-2:] == ["invalid_smiles", "empty"]


def test_memory_does_not_grow_with_the_model() -> None:
    """Atoms that share times the width of all experts is the same from 5 x 128 on."""
    assert most_atoms(1, 16) == most_atoms(5, 128) == 10_240
    assert most_atoms(25, 128) == most_atoms(5, 640) == 10_240 // 5
    assert most_atoms(1000, 4096) >= 1


def test_groups_hold_no_more_atoms_than_they_may() -> None:
    batches = [example_arrays((n,), seed=0)[0] for n in (5, 3, 4, 20, 1, 1)]
    assert list(_groups(batches, 8)) == [[0, 1], [2], [3], [4, 5]]


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_agreement_is_measured_by_how_a_target_varies(size: float) -> None:
    wanted = size * np.random.default_rng(0).standard_normal((2, 30, 1)).astype(np.float32)
    assert are_close(wanted * (1 + 1e-6), wanted)
    assert not are_close(wanted + 1e-2 * size, wanted)
    beside = np.concatenate([wanted, np.full_like(wanted, 1e6)], axis=2)
    assert not are_close(beside + np.array([1e-2 * size, 0]), beside)
    assert not are_close(wanted * np.nan, wanted)


def test_a_target_of_small_values_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = loaded(plan="score")
    for i in range(2):
        for name in ("head.scale", "head.shift"):
            bundle._weights[f"expert{i}/{name}"] = bundle.expert_weights(i)[name] * np.float32(1e-6)
    other = ModelConfig(width=16, plan="1x4@0.4")
    monkeypatch.setattr(engine, "sharing_graph", lambda model, w: sharing_graph(other, w))
    made = OnnxEngine(bundle)
    predict_chunk(SMILES, 0, bundle, made)
    assert not made._may_share


@pytest.mark.parametrize("where", ["sharing_graph", "share"])
def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Other last bits, without a word, would make a mixed file of a resumed run."""
    bundle = loaded(plan="score")
    made = OnnxEngine(bundle)

    def fail(*_: object) -> None:
        raise MemoryError

    if where == "share":
        predict_chunk(SMILES, 0, bundle, made)
    monkeypatch.setattr(engine, where, fail)
    with pytest.raises(MolscoreError, match="memory ran out"):
        predict_chunk(SMILES, 0, bundle, made)


def test_few_molecules_open_no_other_graph() -> None:
    bundle = loaded(plan="score")
    made = OnnxEngine(bundle)
    predict_chunk(SMILES[: engine.SHARED_FROM - 1], 0, bundle, made)
    assert made._sharing is None


def test_a_graph_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle of another version may mean something else by the same weights."""
    bundle = loaded(plan="score")
    other = ModelConfig(width=16, plan="1x4@0.4")
    monkeypatch.setattr(engine, "sharing_graph", lambda model, w: sharing_graph(other, w))
    made = OnnxEngine(bundle)
    found = predict_chunk(SMILES, 0, bundle, made)
    assert not made._may_share
    wanted = predict_chunk(SMILES, 0, bundle, plain(bundle))
    np.testing.assert_array_equal(found.values, wanted.values)


def test_what_cannot_be_shared_is_run_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = loaded(plan="score")
    made = OnnxEngine(bundle)
    predict_chunk(SMILES, 0, bundle, made)
    monkeypatch.setattr(engine, "share", lambda batch, rounds: None)
    found = predict_chunk(SMILES, 0, bundle, made)
    wanted = predict_chunk(SMILES, 0, bundle, plain(bundle))
    np.testing.assert_array_equal(found.values, wanted.values)


def test_a_graph_that_cannot_be_opened_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refuse(model: ModelConfig, weights: object) -> bytes:
        tried.append(model)
        raise KeyError("family.out.bias")

    monkeypatch.setattr(engine, "sharing_graph", refuse)
    bundle = loaded(plan="score")
    made = OnnxEngine(bundle)
    for _ in range(2):
        assert predict_chunk(SMILES, 0, bundle, made).status == ["ok"] * len(SMILES)
    assert len(tried) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"block": "gcn"},
        {"integrator": "rk4"},
        {"readout": "sum"},
        {"descriptors": "rdkit"},
        {"head_plan": "score"},
        {"blend": True},
        {"plan": "residual"},
        {"plan": "1x4@learned"},
    ],
)
def test_other_models_have_no_such_graph(changes: dict[str, object]) -> None:
    assert n_rounds(ModelConfig(**changes)) is None


def test_one_small_expert_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_LEAST_WIDTH", 256)
    assert not SharingEngine.pays(loaded(plan="score"))
    assert ModelConfig().width * 5 >= 256

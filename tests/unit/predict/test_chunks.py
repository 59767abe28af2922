"""One chunk: every row answered, none of them by its neighbours."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from exported_bundle import exported
from handmade_bundle import bundle_bytes, expected
from tree_bundle import tree_bundle

from molscore.bundle.reader import Bundle, parse_bundle
from molscore.bundle.summary import combine, to_reported
from molscore.chem import descriptors
from molscore.chem.descriptors import compute_descriptors
from molscore.chem.graph import featurize_many
from molscore.chem.parse import parse_smiles
from molscore.data.targets import Target
from molscore.errors import ConfigError
from molscore.predict import core
from molscore.predict.core import ChunkResult, predict_chunk
from molscore.predict.engine import Batch, OnnxEngine, Outputs

HANDMADE = parse_bundle(bundle_bytes(n_experts=3), where="x")


def predict(smiles: list[str], bundle: Bundle = HANDMADE, **options: Any) -> ChunkResult:
    return predict_chunk(smiles, 0, bundle, OnnxEngine(bundle), **options)


def test_values_are_those_of_the_model() -> None:
    result = predict(["CCO", "O", "c1ccccc1"])
    experts = np.array(
        [[expected(list(s), expert=i) for s in ("CCO", "O", "C" * 6)] for i in range(3)]
    )
    np.testing.assert_allclose(result.values[:, 0], experts.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(result.sd[:, 0], experts.std(axis=0, ddof=1), rtol=1e-5)
    assert result.status == ["ok"] * 3
    assert result.error == [""] * 3


def test_one_expert_has_no_spread() -> None:
    result = predict(["CCO"], parse_bundle(bundle_bytes(n_experts=1), where="x"))
    assert result.values[0, 0] == pytest.approx(expected(list("CCO")))
    assert np.isnan(result.sd).all()


@pytest.mark.parametrize(
    ("smiles", "status"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("nan", "empty"),
        ("c1cccn1", "invalid_smiles"),
        ("[R1]CC", "invalid_smiles"),
        ("CCO>>CC=O", "invalid_smiles"),
        ("C[N](C)(C)(C)(C)C", "invalid_smiles"),
        ("*CC", "unsupported"),
    ],
)
def test_a_bad_row_is_empty_with_a_reason_and_costs_no_other(smiles: str, status: str) -> None:
    result = predict(["CCO", smiles, "CCN"])
    assert result.status == ["ok", status, "ok"]
    assert result.error[1]
    assert np.isnan(result.values[1]).all()
    assert np.isnan(result.sd[1]).all()
    alone = predict(["CCO", "CCN"])
    np.testing.assert_array_equal(result.values[[0, 2]], alone.values)


def test_a_chunk_of_bad_rows_and_an_empty_chunk() -> None:
    assert predict(["", "xx"]).status == ["empty", "invalid_smiles"]
    assert len(predict([])) == 0


MIXED = ["C", "[Na+].[Cl-]", "CCO", "OCC", "x", "c1ccccc1C(=O)O", "C" * 90, "O", "CC(C)C", "CCO"]


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64])
def test_a_value_does_not_depend_on_batch_size_order_or_neighbours(batch_size: int) -> None:
    bundle = parse_bundle(exported(), where="x")
    whole = predict(MIXED, bundle)
    assert (np.abs(whole.values[[0, 1, 2]] - whole.values[[7, 7, 5]]) > 1e-6).all()
    other = predict(MIXED, bundle, batch_size=batch_size)
    np.testing.assert_allclose(other.values, whole.values, rtol=1e-5, atol=1e-7)
    turned = predict(MIXED[::-1], bundle, batch_size=batch_size)
    np.testing.assert_allclose(turned.values[::-1], whole.values, rtol=1e-5, atol=1e-7)
    for i, smiles in enumerate(MIXED):
        alone = predict([smiles], bundle, batch_size=batch_size)
        np.testing.assert_allclose(alone.values[0], whole.values[i], rtol=1e-5, atol=1e-7)
        assert alone.status[0] == whole.status[i]


def test_batches_hold_like_sizes_and_few_atoms() -> None:
    seen: list[tuple[int, int]] = []

    class Spy(OnnxEngine):
        def run(self, batches: Sequence[Batch]) -> list[Outputs]:
            seen.extend((len(arrays.n_atoms), len(arrays.graph_id)) for arrays, _ in batches)
            return super().run(batches)

    smiles = ["C" * n for n in (300, 1, 2, 250, 3, 4, 200)]
    predict_chunk(smiles, 0, HANDMADE, Spy(HANDMADE), batch_size=4)
    assert seen == [(4, 10), (1, 200), (1, 250), (1, 300)]


class Faulty(OnnxEngine):
    """An engine that spoils what it gives for molecules of a given size."""

    def __init__(self, bundle: Bundle, size: int, spoil: Any):
        super().__init__(bundle)
        self.size, self.spoil = size, spoil

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        results = super().run(batches)
        for (arrays, _), outputs in zip(batches, results, strict=True):
            hit = arrays.n_atoms == self.size
            if hit.any():
                if isinstance(self.spoil, Exception):
                    raise self.spoil
                outputs[0, hit] = self.spoil
        return results


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_result_that_is_no_number_is_a_failed_row(value: float) -> None:
    engine = Faulty(HANDMADE, 3, value)
    result = predict_chunk(["CC", "CCO", "CCCC"], 0, HANDMADE, engine)
    assert result.status == ["ok", "failed", "ok"]
    assert result.error[1] == "the prediction of 'logS' is not a finite number"
    assert np.isnan(result.values[1]).all()
    assert np.isfinite(result.values[[0, 2]]).all()


@pytest.mark.parametrize("batch_size", [1, 2, 16])
@pytest.mark.parametrize("error", [RuntimeError("bad\nshape"), MemoryError("too large")])
def test_an_engine_that_fails_on_one_molecule_serves_the_others(
    error: Exception, batch_size: int
) -> None:
    engine = Faulty(HANDMADE, 3, error)
    result = predict_chunk(["CC", "CCO", "CCCC"], 0, HANDMADE, engine, batch_size=batch_size)
    assert np.isfinite(result.values[[0, 2]]).all()
    assert result.status == ["ok", "failed", "ok"]
    assert result.error[1].startswith(f"the engine failed: {type(error).__name__}: ")
    assert "\n" not in result.error[1]


def test_an_unforeseen_error_while_reading_fails_that_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(text: str, *others: Any) -> Any:
        if text == "CCO":
            raise KeyError("surprise")
        return parse_smiles(text, *others)

    monkeypatch.setattr(core, "parse_smiles", parse)
    assert_only_the_second_of_three_fails()


def test_an_unforeseen_error_while_featurising_fails_that_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def featurize(molecules: Any) -> Any:
        if any(molecule.smiles == "CCO" for molecule in molecules):
            raise KeyError("surprise")
        return featurize_many(molecules)

    monkeypatch.setattr(core, "featurize_many", featurize)
    assert_only_the_second_of_three_fails()
    assert predict(["CCO", "CCO"]).status == ["failed", "failed"]


def test_an_unforeseen_error_in_descriptors_fails_that_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees = parse_bundle(tree_bundle(), where="trees")
    smiles = ["CC", "CCO", "x", "CCC"]
    sound = predict(smiles, trees)

    def compute(molecules: Any, names: Any) -> Any:
        if any(molecule.smiles == "CCO" for molecule in molecules):
            raise KeyError("surprise")
        return compute_descriptors(molecules, names)

    monkeypatch.setattr(descriptors, "compute_descriptors", compute)
    result = predict(smiles, trees)
    assert result.status == ["ok", "failed", "invalid_smiles", "ok"]
    assert result.error[1] == "the descriptors failed: KeyError: 'surprise'"
    assert np.isnan(result.values[1]).all()
    np.testing.assert_array_equal(result.values[[0, 3]], sound.values[[0, 3]])
    assert predict(["CCO"], trees).status == ["failed"]


def test_descriptors_that_are_not_known_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(molecules: Any, names: Any) -> Any:
        raise ConfigError("not known")

    monkeypatch.setattr(descriptors, "compute_descriptors", compute)
    with pytest.raises(ConfigError, match="not known"):
        predict(["CC", "CCO"], parse_bundle(tree_bundle(), where="trees"))


def assert_only_the_second_of_three_fails() -> None:
    result = predict(["CC", "CCO", "CCC"])
    assert result.status == ["ok", "failed", "ok"]
    assert result.error[1] == "cannot be read: KeyError: 'surprise'"
    expected_rows = [[expected(list(s), expert=i) for s in ("CC", "CCC")] for i in range(3)]
    np.testing.assert_allclose(result.values[[0, 2], 0], np.mean(expected_rows, axis=0), rtol=1e-6)


def test_an_overflowing_transform_fails_one_target_only() -> None:
    targets = (Target(name="plain"), Target(name="steep", transform="log10"))
    bundle = parse_bundle(bundle_bytes(targets), where="x")
    engine = Faulty(bundle, 3, np.array([1.0, 400.0], dtype=np.float32))
    result = predict_chunk(["CCO", "C"], 0, bundle, engine)
    assert result.status == ["failed", "ok"]
    assert "'steep'" in result.error[0]
    assert np.isfinite(result.values[0, 0])
    assert np.isnan(result.values[0, 1])


@pytest.mark.parametrize(
    ("target", "raw", "value"),
    [
        (Target(name="t"), -3.0, -3.0),
        (Target(name="t", transform="log10"), -3.0, 1e-3),
        (Target(name="t", transform="ln"), 1.0, np.e),
        (Target(name="t", transform="log1p"), 0.0, 0.0),
        (Target(name="t", kind="classification"), 0.0, 0.5),
        (Target(name="t", kind="classification"), -800.0, 0.0),
        (Target(name="t", kind="classification"), 800.0, 1.0),
    ],
)
def test_what_is_reported_is_in_the_unit_of_the_table(
    target: Target, raw: float, value: float
) -> None:
    found = to_reported(np.array([[raw]], dtype=np.float32), target)
    np.testing.assert_allclose(found, [[value]], rtol=1e-12, atol=1e-300)


def test_a_class_is_the_mean_of_probabilities_not_of_logits() -> None:
    target = Target(name="t", kind="classification")
    mean, _ = combine(to_reported(np.array([[-4.0], [0.0]], dtype=np.float32), target))
    assert mean[0] == pytest.approx((1 / (1 + np.exp(4)) + 0.5) / 2)


@pytest.mark.slow
def test_descriptors_are_computed_and_scaled_for_each_expert() -> None:
    bundle = parse_bundle(exported(descriptors=True), where="x")
    smiles = ["CCO", "C[Sn](C)(C)C", "[Na+].[Cl-]", "x", "CCCCCCCC"]
    seen = []

    class Spy(OnnxEngine):
        def run(self, batches: Sequence[Batch]) -> list[Outputs]:
            seen.extend(descriptors for _, descriptors in batches)
            return super().run(batches)

    result = predict_chunk(smiles, 0, bundle, Spy(bundle), batch_size=1)
    assert result.status == ["ok", "ok", "ok", "invalid_smiles", "ok"]
    smallest = parse_smiles("[Na+].[Cl-]", bundle.manifest.policy)
    raw = compute_descriptors([smallest], bundle.manifest.descriptor_names)  # type: ignore[list-item]
    for i in range(2):
        np.testing.assert_array_equal(seen[0][i], bundle.scaler(i).transform(raw))
    together = predict_chunk(smiles, 0, bundle, OnnxEngine(bundle))
    np.testing.assert_allclose(together.values, result.values, rtol=1e-5)

"""What a training run learns of its own errors."""

import json
from pathlib import Path

import numpy as np
import pytest

import molscore
from molscore.bundle.reader import load_bundle
from molscore.bundle.similarity_graph import SimilaritySearch
from molscore.bundle.structures import STRUCTURES, KnownStructures
from molscore.bundle.summary import sigmoid
from molscore.chem.fingerprints import fingerprint_many
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import read_labelled
from molscore.errors import ConfigError
from molscore.stats.conformal import conformal_quantile, describe_intervals
from molscore.train import trust as fitting
from molscore.train.assess import OutOfFold
from molscore.train.calibration import calibrate
from molscore.train.prepare import prepare
from molscore.train.trust import (
    _fit_interval,
    _neighbours_elsewhere,
    fit_difficulty,
)
from molscore.trust.features import SHAPE, Neighbours, difficulty_features
from molscore.trust.stored import read_trust
from tests.molecules import VARIED, molecule

RNG = np.random.default_rng(0)
N = 2000
FOLDS = np.arange(N) % 5
SPREAD = np.exp(RNG.uniform(-2, 1, N))
"""True size of the errors; the first feature is its logarithm."""


def residuals(seed: int) -> np.ndarray:
    return SPREAD * np.random.default_rng(seed).standard_normal(N)


def test_the_scale_finds_what_the_errors_depend_on() -> None:
    features = np.stack([np.log(SPREAD), RNG.uniform(size=N), np.ones(N)], axis=1)
    fitted = fit_difficulty(features, np.abs(residuals(1)), 1.0)
    assert np.corrcoef(np.log(fitted.scale(features)), np.log(SPREAD))[0, 1] > 0.98
    assert 2 not in fitted.feature  # a constant says nothing


def test_intervals_hold_their_share_among_easy_and_hard_rows() -> None:
    p = np.log(SPREAD)  # the prediction is itself a feature
    shape = np.zeros((N, len(SHAPE) - 1))
    there = np.ones(N, dtype=np.bool_)
    y = p + residuals(2)
    interval, said = _fit_interval(y, p, shape, None, FOLDS, there)
    said = said["interval"]
    assert said["n"] == N
    assert 0.88 < said["coverage"] < 0.92
    # Seven times as wide for the hard ones as for the easy ones, where one width holds all of the
    # easy and half of the hard ones.
    even = describe_intervals(y - p, np.full(N, said["constant_width"] / 2), SPREAD)
    assert min(said["coverage_by_difficulty"]) > 0.75 > min(even["coverage_by_difficulty"])
    assert said["width"] < 0.8 * said["constant_width"]
    assert (np.diff(interval.scores) >= 0).all()


@pytest.mark.parametrize("n", [1, 5, 29])
def test_few_rows_have_one_width(n: int) -> None:
    size = np.linspace(0.1, 1.0, n)
    fitted = fit_difficulty(RNG.uniform(size=(n, 3)), size, float(size.mean()))
    assert len(fitted.feature) == 0
    np.testing.assert_allclose(fitted.scale(np.zeros((2, 3))), size.mean())


def test_no_error_at_all_is_a_scale_too() -> None:
    fitted = fit_difficulty(RNG.uniform(size=(50, 3)), np.zeros(50), 0.0)
    assert (fitted.scale(np.zeros((2, 3))) > 0).all()


def elsewhere(prints: np.ndarray, folds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    every = np.arange(len(folds))
    return _neighbours_elsewhere(prints, folds, every, prints, folds, every)


def test_neighbours_come_from_other_folds() -> None:
    prints = fingerprint_many([molecule(s) for s in VARIED])
    folds = np.arange(len(VARIED)) % 3
    similarity, index = elsewhere(prints, folds)
    assert similarity.shape == (len(VARIED), 8)
    assert (folds[index] != folds[:, None]).all()
    folds[:2] = -1  # never held out: others may be near them, they have no neighbours
    similarity, index = elsewhere(prints, folds)
    assert np.isnan(similarity[:2]).all()
    assert np.isin([0, 1], index[2:]).all()


def test_without_folds_a_structure_is_not_its_own_neighbour() -> None:
    prints = fingerprint_many([molecule(s) for s in [*VARIED, "CCCCCCCCCO", "CCCCCCCCCO"]])
    similarity, index = elsewhere(prints, np.full(len(prints), -1))
    assert (index != np.arange(len(prints))[:, None]).all()
    assert similarity[-1, 0] == similarity[-2, 0] == 1.0  # twins
    assert similarity[0, 0] < 1.0


def test_overconfident_classes_are_calibrated() -> None:
    logits = RNG.normal(0, 1.5, N)
    y = (RNG.uniform(size=N) < sigmoid(logits)).astype(np.float64)
    found, said = calibrate(y, sigmoid(3 * logits + 1), FOLDS)
    assert found is not None
    assert found.slope == pytest.approx(1 / 3, rel=0.15)
    assert found.intercept == pytest.approx(-1 / 3, abs=0.15)
    said = said["calibration"]
    assert said["after"]["log_loss"] < said["before"]["log_loss"]
    assert said["after"]["brier"] < said["before"]["brier"]


@pytest.mark.parametrize(
    ("y", "p"),
    [
        (np.ones(N), np.full(N, 0.9)),  # one class
        (np.arange(20.0) % 2, np.linspace(0.1, 0.9, 20)),  # few rows
        (np.arange(N) % 2 * 1.0, np.where(np.arange(N) % 2, 0.1, 0.9)),  # always wrong
    ],
)
def test_what_cannot_be_calibrated_is_left_as_it_is(y: np.ndarray, p: np.ndarray) -> None:
    assert calibrate(y, p, FOLDS[: len(y)]) == (None, {})


TABLE = "smiles,logS,acid\n" + "".join(
    f"{'C' * (i % 14 + 1)}{tail},{0.5 - 0.4 * (i % 14) + bonus:.2f},{int(tail == 'C(=O)O')}\n"
    for i, (tail, bonus) in enumerate([("O", 0.5), ("C(=O)O", 0.8), ("Cl", -0.6), ("N", 0.4)] * 14)
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    """A model of a value and a class, and its twin without structures."""
    folder = tmp_path_factory.mktemp("trust")
    table = folder / "t.csv"
    table.write_text(TABLE)
    out = {}
    for structures in (True, False):
        output = folder / f"{structures}.molscore"
        out[structures] = molscore.train(
            table,
            output=output,
            target=["logS", "acid"],
            width=16,
            epochs=2,
            structures=structures,
            workers=2,
        )
    return out


@pytest.mark.slow
class TestWholeRuns:
    def test_a_bundle_says_how_far_to_trust_it(self, trained) -> None:
        result = trained[True]
        trust = read_trust(load_bundle(result.bundle))
        assert trust is not None
        assert trust.structures is not None
        assert len(trust.structures.smiles) == result.prepared.counts["structures"]
        assert trust.structures.smiles[0] == "CO"
        assert trust.intervals[0] is not None
        assert trust.intervals[1] is None
        said = result.metrics["logS"]
        assert said["interval"]["n"] == result.prepared.counts["rows_used"]
        assert set(said["domain"]) == {"outside", "rmse_inside", "rmse_outside"}
        frame = molscore.load(result.bundle).predict(["CCCO", "[U]"])
        assert (frame.pred_logS_lo < frame.pred_logS).all()
        assert frame.in_domain.tolist()[1] == "no"
        assert json.loads((result.run_dir / "metrics.json").read_text()) == result.metrics

    def test_another_choice_about_structures_does_not_go_on(self, trained) -> None:
        """A flag that is forgotten must not write what is confidential."""
        for structures, result in trained.items():
            with pytest.raises(ConfigError, match="structures was"):
                molscore.train(
                    Path(result.bundle).with_name("t.csv"),
                    output=result.bundle,
                    target=["logS", "acid"],
                    width=16,
                    epochs=2,
                    structures=not structures,
                    resume=True,
                    force=True,
                )

    def test_without_structures_there_are_keyed_hashes_alone(self, trained) -> None:
        result = trained[False]
        bundle = load_bundle(result.bundle)
        trust = read_trust(bundle)
        assert trust is not None
        assert trust.structures is None
        assert trust.intervals[0] is not None
        assert STRUCTURES not in bundle.arrays
        (name,) = [n for n in bundle.arrays if n.startswith("structures/")]
        plain = load_bundle(trained[True].bundle).arrays[STRUCTURES]
        assert not np.isin(bundle.arrays[name], plain).any()
        known = KnownStructures.from_arrays(bundle.arrays)
        assert known.seen(result.prepared.keys).all()
        assert not known.seen(["another"]).any()
        raw = Path(result.bundle).read_bytes()
        assert b"CCCCCCCCCCC" not in raw

    def test_the_same_run_gives_the_same_bytes(self, trained) -> None:
        again = molscore.train(
            Path(trained[True].bundle).with_name("t.csv"),
            output=Path(trained[True].bundle).with_name("again.molscore"),
            target=["logS", "acid"],
            width=16,
            epochs=2,
            workers=1,
        )
        ours = load_bundle(again.bundle).arrays
        theirs = load_bundle(trained[True].bundle).arrays
        assert set(ours) == set(theirs)
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name])


def test_scores_are_thinned_to_no_narrower_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MAX_SCORES", 99)
    scores = np.sort(RNG.exponential(size=5000))
    thin = fitting._thinned(scores)
    assert len(thin) == 99
    for level in (0.5, 0.8, 0.9, 0.95):
        whole, few = conformal_quantile(scores, level), conformal_quantile(thin, level)
        assert whole <= few < 1.2 * whole
    assert fitting._thinned(scores[:50]) is not None
    np.testing.assert_array_equal(fitting._thinned(scores[:50]), scores[:50])


def test_large_sets_are_judged_by_the_sample_they_carry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A threshold set among all would put every molecule out of the domain of a sample."""
    smiles = [
        f"{'C' * a}{middle}{'C' * b}"
        for a in range(1, 9)
        for b in range(9)
        for middle in ("O", "N", "S", "C(=O)", "c1ccc(cc1)")
    ]
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\n" + "".join(f"{s},{len(s)}\n" for s in smiles))
    monkeypatch.setattr(fitting, "MAX_STRUCTURES", 40)
    table = read_labelled(path)
    prepared = prepare(
        table, policy=ChemPolicy(), split="random", n_folds=5, seed=0, descriptors=False, workers=1
    )
    n = len(prepared.keys)
    oof = OutOfFold(np.zeros((1, n, 1)))
    fitted = fitting.fit_trust(prepared, table.targets, oof, structures=True)
    assert len(fitted.arrays["trust/fingerprints"]) == 40
    threshold = fitted.arrays["trust/threshold"][0]
    carried = SimilaritySearch(fitted.arrays["trust/fingerprints"], 1)
    similarity, _ = carried.nearest(prepared.fingerprints)
    assert (similarity[:, 0] < threshold).mean() <= 0.12


def series_trial(seed: int, n: int = 1000, n_series: int = 500) -> tuple[float, float]:
    """Return the share of values that intervals hold: of the cross-validation, and of new rows.

    Series of like molecules whose values are noise, and experts that answer the mean of a series.
    """
    rng = np.random.default_rng(seed)
    series, y = rng.integers(0, n_series, n), rng.standard_normal(n)
    folds = rng.permutation(n) % 5
    new_series, new_y = rng.integers(0, n_series, n), rng.standard_normal(n)

    def answer(fold: int, asked: np.ndarray) -> np.ndarray:
        learned = folds != fold
        total = np.bincount(series[learned], y[learned], n_series)
        return (total / np.maximum(np.bincount(series[learned], minlength=n_series), 1))[asked]

    def around(same: np.ndarray) -> Neighbours:
        nearest = np.argsort(~same, axis=1, kind="stable")[:, :10]
        return Neighbours(np.where(np.take_along_axis(same, nearest, 1), 1.0, 0.1), y[nearest])

    p = np.concatenate([answer(fold, series[folds == fold]) for fold in range(5)])
    p = p[np.argsort(np.argsort(folds, kind="stable"))]
    shape, there = np.zeros((n, len(SHAPE) - 1)), np.ones(n, dtype=np.bool_)
    elsewhere = (series[:, None] == series) & (folds[:, None] != folds)
    interval, said = _fit_interval(y, p, shape, around(elsewhere), folds, there)
    new_p = answer(0, new_series)
    features = difficulty_features(new_p, shape, around(new_series[:, None] == series))
    inside = np.abs(new_y - new_p) <= interval.half_widths(features, 0.9)
    return said["interval"]["coverage"], float(inside.mean())


def test_intervals_hold_for_new_molecules_of_noisy_series() -> None:
    """An expert knows the other members of a series: no feature may tell what it made of them."""
    shares = np.mean([series_trial(seed) for seed in range(4)], axis=0)
    assert (shares > 0.885).all()
    assert (shares < 0.93).all()

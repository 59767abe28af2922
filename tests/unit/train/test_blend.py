"""The weight of a blend: the best one, and never fitted on the rows it is judged on."""

import numpy as np
import pytest

from molscore.bundle.trees import WEIGHT
from molscore.data.targets import Target
from molscore.train.blend import EVEN, fit_weight, join, join_blend
from molscore.train.data import TrainingData
from molscore.train.result import ExpertResult
from tests.molecules import pack


def data_of(values, folds, is_class=(False,)):
    n = len(values)
    return TrainingData(
        graphs=pack(*["CCO"] * n),
        values=np.asarray(values, dtype=np.float64).reshape(n, -1),
        is_class=is_class,
        folds=np.asarray(folds, dtype=np.int64),
        table_rows=np.arange(n, dtype=np.int64),
    )


def experts_of(data, predictions, kind):
    """One expert a fold that gives these predictions [n, n_targets] on its held-out rows."""
    out = np.asarray(predictions, dtype=np.float32).reshape(len(data), -1)
    return [
        ExpertResult({kind: np.full(1, k, np.float32)}, rows, out[rows], 0.0)
        for k in sorted(set(data.folds.tolist()))
        for rows in (np.flatnonzero(data.folds == k),)
    ]


def planted():
    """In fold 0 the network is right, in folds 1 and 2 the trees are."""
    rng = np.random.default_rng(0)
    folds = np.repeat([0, 1, 2], 20)
    y = rng.standard_normal(60)
    wrong = y + rng.standard_normal(60) + 1.0
    network = np.where(folds == 0, y, wrong)
    trees = np.where(folds == 0, wrong, y)
    return data_of(y, folds), network, trees


def test_the_figures_of_a_fold_do_not_use_its_own_rows():
    data, network, trees = planted()
    joined = join_blend(
        data, experts_of(data, network, "g"), experts_of(data, trees, "t"), n_repeats=1
    )
    # Fold 0 alone would choose 1: by the other folds, it must take 0, and be badly wrong.
    assert fit_weight(data.values[:20, 0], network[:20], trees[:20], is_class=False) == 1.0
    assert joined.fold_weights[0][0] == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(joined.oof.predictions[0, :20, 0], trees[:20], rtol=1e-5)
    # The others see fold 0 and one fold like themselves, and what ships sees all.
    for fold in (1, 2):
        rows = data.folds != fold
        wanted = fit_weight(data.values[rows, 0], network[rows], trees[rows], is_class=False)
        assert joined.fold_weights[fold][0] == pytest.approx(wanted, abs=1e-5)
        assert 0.1 < wanted < 0.9
    assert joined.weights is not None
    assert joined.weights[0] == pytest.approx(
        fit_weight(data.values[:, 0], network, trees, is_class=False), abs=1e-5
    )
    assert joined.weights[0] not in [w[0] for w in joined.fold_weights.values()]
    metrics = joined.metrics(data, [Target(name="y")])["y"]
    assert metrics["folds"][0]["rmse"] == pytest.approx(metrics["trees"]["folds"][0]["rmse"])
    assert metrics["graph"]["folds"][0]["rmse"] == pytest.approx(0.0, abs=1e-6)


def test_changing_the_values_of_a_fold_changes_nothing_in_its_predictions():
    data, network, trees = planted()
    values = data.values.copy()
    values[:20] = 99.0
    other = data_of(values, data.folds)
    a, b = (
        join_blend(d, experts_of(d, network, "g"), experts_of(d, trees, "t"), 1).oof.predictions
        for d in (data, other)
    )
    assert np.array_equal(a[:, :20], b[:, :20])
    assert not np.array_equal(a[:, 20:], b[:, 20:])


def test_every_expert_of_the_bundle_carries_both_and_the_weight():
    data, network, trees = planted()
    joined = join_blend(data, experts_of(data, network, "g"), experts_of(data, trees, "t"), 1)
    assert [sorted(e) for e in joined.experts] == [[WEIGHT, "g", "t"]] * 3
    assert [float(e["g"][0]) for e in joined.experts] == [0.0, 1.0, 2.0]
    assert all(e["g"][0] == e["t"][0] for e in joined.experts)
    assert joined.experts[0][WEIGHT].dtype == np.float32
    text = joined.metrics(data, [Target(name="y")])["y"]["weight"]
    assert text["graph"] == pytest.approx(float(joined.experts[0][WEIGHT][0]))
    assert [w["fold"] for w in text["folds"]] == [0, 1, 2]


def test_each_target_has_its_own_weight_and_gaps_are_left_out():
    rng = np.random.default_rng(1)
    y = rng.standard_normal((40, 2))
    good, bad = y.copy(), y + 3.0
    network = np.stack([good[:, 0], bad[:, 1]], axis=1)
    trees = np.stack([bad[:, 0], good[:, 1]], axis=1)
    y[::3, 0] = np.nan
    data = data_of(y, np.arange(40) % 4, (False, False))
    joined = join_blend(data, experts_of(data, network, "g"), experts_of(data, trees, "t"), 1)
    assert joined.weights is not None
    np.testing.assert_allclose(joined.weights, [1.0, 0.0], atol=1e-6)


def test_classes_are_blended_as_logits():
    y = np.array([1.0, 0.0] * 20)
    network, trees = np.where(y > 0, 2.0, -2.0), np.tile([1.0, 1.0, -1.0, -1.0], 10)
    data = data_of(y, np.arange(40) % 5, (True,))
    joined = join_blend(data, experts_of(data, network, "g"), experts_of(data, trees, "t"), 1)
    w = np.array([joined.fold_weights[int(k)][0] for k in data.folds])
    logits = w * network + (1 - w) * trees
    np.testing.assert_allclose(
        joined.oof.predictions[0, :, 0], 1 / (1 + np.exp(-logits)), rtol=1e-6
    )


def test_the_weight_is_the_best_one():
    rng = np.random.default_rng(2)
    y, a, b = rng.standard_normal((3, 200))
    a, b = y + a, y + b + 0.5
    grid = np.linspace(0, 1, 1001)
    squares = [((y - w * a - (1 - w) * b) ** 2).sum() for w in grid]
    assert fit_weight(y, a, b, is_class=False) == pytest.approx(grid[np.argmin(squares)], abs=1e-3)
    c = (y > 0).astype(float)
    entropy = [np.logaddexp(0, -(2 * c - 1) * (w * a + (1 - w) * b)).sum() for w in grid]
    found = fit_weight(c, a, b, is_class=True)
    assert 0 < found < 1
    assert found == pytest.approx(grid[np.argmin(entropy)], abs=1e-3)


@pytest.mark.parametrize("is_class", [False, True])
def test_the_weight_stays_between_the_two(is_class):
    y = np.array([0.0, 1.0, 1.0, 0.0])
    sure = np.array([-3.0, 3.0, 3.0, -3.0]) if is_class else y
    assert fit_weight(y, sure, -sure + 1, is_class=is_class) == 1.0
    assert fit_weight(y, -sure + 1, sure, is_class=is_class) == 0.0
    assert fit_weight(y, sure, sure, is_class=is_class) == EVEN
    nothing = np.full(4, np.nan)
    assert fit_weight(nothing, sure, -sure, is_class=is_class) == EVEN


def test_repeats_are_judged_apart_and_share_the_weight():
    data, network, trees = planted()
    networks = [*experts_of(data, network, "g"), *experts_of(data, network + 0.1, "g")]
    joined = join_blend(data, networks, experts_of(data, trees, "t") * 2, n_repeats=2)
    assert joined.oof.predictions.shape == (2, 60, 1)
    assert joined.weights is not None
    assert joined.weights.shape == (1,)
    assert len(joined.experts) == 6
    assert "averaged_mean" in joined.metrics(data, [Target(name="y")])["y"]["trees"]


def test_without_folds_the_two_count_the_same():
    data = data_of(np.arange(6.0), np.full(6, -1))
    nobody = [ExpertResult({}, np.zeros(0, np.int64), np.zeros((0, 1), np.float32), 0.0)]
    joined = join_blend(data, nobody, nobody, 1)
    assert joined.weights is not None
    assert joined.weights.tolist() == [EVEN]
    assert joined.fold_weights == {}


def test_experts_of_one_kind_are_joined_as_they_are():
    data, network, _ = planted()
    joined = join(data, experts_of(data, network, "g"), 1)
    assert joined.weights is None
    np.testing.assert_allclose(joined.oof.predictions[0, :, 0], network, rtol=1e-6)
    assert "weight" not in joined.metrics(data, [Target(name="y")])["y"]

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import (
    average_precision_score,
    matthews_corrcoef,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from molscore.stats.metrics import classification_metrics, regression_metrics


def with_ties(rng: np.random.Generator, n: int, decimals: int) -> np.ndarray:
    return np.round(rng.normal(size=n), decimals)


@pytest.mark.parametrize("n", [2, 3, 10, 500])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_regression_agrees_with_sklearn_and_scipy(n, decimals):
    rng = np.random.default_rng(n + decimals)
    y = with_ties(rng, n, decimals)
    y[0] += 1  # never constant
    p = y + with_ties(rng, n, decimals)
    p[-1] += 0.5
    got = regression_metrics(y, p)
    assert got["rmse"] == pytest.approx(math.sqrt(mean_squared_error(y, p)), rel=1e-12)
    assert got["mae"] == pytest.approx(mean_absolute_error(y, p), rel=1e-12)
    assert got["r2"] == pytest.approx(r2_score(y, p), rel=1e-9, abs=1e-12)
    assert got["spearman"] == pytest.approx(spearmanr(y, p).statistic, abs=1e-12)
    assert got["n"] == n


@pytest.mark.parametrize("n", [2, 7, 400])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_classification_agrees_with_sklearn(n, decimals):
    rng = np.random.default_rng(100 * n + decimals)
    p = np.clip(np.round(rng.uniform(size=n), decimals), 0, 1)
    p[0], p[-1] = 0.2, 0.8  # both classes called
    y = (rng.uniform(size=n) < 0.3 + 0.4 * p).astype(float)
    y[0], y[-1] = 1, 0  # both classes present
    got = classification_metrics(y, p)
    assert got["roc_auc"] == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert got["pr_auc"] == pytest.approx(average_precision_score(y, p), abs=1e-12)
    assert got["mcc"] == pytest.approx(matthews_corrcoef(y, p >= 0.5), abs=1e-12)
    assert got["n"] == n


@pytest.mark.parametrize(
    ("y", "p", "expected"),
    [
        ([], [], {"rmse": None, "mae": None, "r2": None, "spearman": None, "n": 0}),
        ([2.0], [1.0], {"rmse": 1.0, "mae": 1.0, "r2": None, "spearman": None, "n": 1}),
        ([1, 1], [0, 2], {"rmse": 1.0, "mae": 1.0, "r2": None, "spearman": None, "n": 2}),
        ([0, 2], [1, 1], {"rmse": 1.0, "mae": 1.0, "r2": 0.0, "spearman": None, "n": 2}),
        # The mean of three 0.1 is not 0.1, so SST of these is 1e-34 and not 0.
        ([0.1] * 3, [0.1] * 3, {"rmse": 0.0, "mae": 0.0, "r2": None, "spearman": None, "n": 3}),
    ],
)
def test_regression_without_enough_variation(y, p, expected):
    assert regression_metrics(y, p) == expected


@pytest.mark.parametrize(
    ("y", "p", "expected"),
    [
        ([], [], {"roc_auc": None, "pr_auc": None, "mcc": None, "n": 0}),
        ([1.0], [0.9], {"roc_auc": None, "pr_auc": 1.0, "mcc": None, "n": 1}),
        ([0.0], [0.9], {"roc_auc": None, "pr_auc": None, "mcc": None, "n": 1}),
        ([0, 0, 0], [0.1, 0.5, 0.9], {"roc_auc": None, "pr_auc": None, "mcc": None, "n": 3}),
        ([1, 1], [0.1, 0.9], {"roc_auc": None, "pr_auc": 1.0, "mcc": None, "n": 2}),
        ([1, 0], [0.7, 0.7], {"roc_auc": 0.5, "pr_auc": 0.5, "mcc": None, "n": 2}),
        ([1, 0], [0.5, 0.49], {"roc_auc": 1.0, "pr_auc": 1.0, "mcc": 1.0, "n": 2}),
    ],
)
def test_classification_without_enough_classes(y, p, expected):
    assert classification_metrics(y, p) == expected


def test_values_outside_the_range_of_squares_are_undefined_not_infinite():
    got = regression_metrics([0.0, 1e-200], [1e200, 0.0])
    assert got["rmse"] is None
    assert got["r2"] is None
    assert got["mae"] == pytest.approx(5e199)


def test_gaps_in_the_measured_values_leave_the_pair_out():
    nan = float("nan")
    assert regression_metrics([1, nan, 3], [1.5, 9, 2]) == regression_metrics([1, 3], [1.5, 2])
    got = classification_metrics([1, nan, 0], [0.9, 0.1, 0.2])
    assert got == classification_metrics([1, 0], [0.9, 0.2])


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([1, 2], [1], "equal 1-D shapes"),
        ([[1, 2]], [[1, 2]], "equal 1-D shapes"),
        ([1, 2], [1, float("nan")], "finite"),
        ([1, float("inf")], [1, 1], "finite"),
    ],
)
@pytest.mark.parametrize("metrics", [regression_metrics, classification_metrics])
def test_bad_arrays_are_refused(metrics, y, p, message):
    with pytest.raises(ValueError, match=message):
        metrics(y, p)


def test_classes_and_probabilities_are_checked():
    with pytest.raises(ValueError, match="0 or 1"):
        classification_metrics([1, 2], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        classification_metrics([1, 0], [3.0, -2.0])


finite = st.floats(-1e300, 1e300)


@given(st.lists(st.tuples(finite, finite), max_size=12))
def test_every_regression_metric_is_finite_or_none(pairs):
    got = regression_metrics([a for a, _ in pairs], [b for _, b in pairs])
    json.dumps(got, allow_nan=False)
    assert got["n"] == len(pairs)
    assert got["spearman"] is None or -1 <= got["spearman"] <= 1


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.floats(0, 1)), max_size=12))
def test_every_classification_metric_is_in_range_or_none(pairs):
    got = classification_metrics([a for a, _ in pairs], [b for _, b in pairs])
    for name, low in (("roc_auc", 0), ("pr_auc", 0), ("mcc", -1)):
        assert got[name] is None or low <= got[name] <= 1
    assert got["n"] == len(pairs)

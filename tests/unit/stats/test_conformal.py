"""Intervals from held-out residuals, against crepes and against what they promise."""

import numpy as np
import pytest
from crepes import ConformalRegressor

from molscore.stats.conformal import conformal_quantile, cross_widths, describe_intervals


@pytest.mark.parametrize("n", [12, 57, 500])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_a_quantile_is_that_of_crepes(n: int, level: float) -> None:
    rng = np.random.default_rng(n)
    residuals, sigmas = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    theirs = ConformalRegressor()
    theirs.fit(residuals=residuals, sigmas=sigmas)
    low, high = theirs.predict_int(np.zeros(1), sigmas=np.ones(1), confidence=level)[0]
    ours = conformal_quantile(np.sort(np.abs(residuals) / sigmas), level)
    assert ours == pytest.approx(high)
    assert -ours == pytest.approx(low)


def test_too_few_scores_have_no_quantile() -> None:
    assert conformal_quantile(np.arange(8.0), 0.9) == np.inf
    assert conformal_quantile(np.arange(9.0), 0.9) == 8.0
    assert conformal_quantile(np.empty(0), 0.5) == np.inf


def test_the_share_is_held_whatever_the_distribution() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        scores = np.sort(rng.standard_cauchy(99) ** 2)
        inside.append(rng.standard_cauchy() ** 2 <= conformal_quantile(scores, 0.9))
    assert 0.88 < np.mean(inside) < 0.92


def test_a_row_has_no_part_in_its_own_width() -> None:
    scores = np.array([1.0, 2.0, 3.0, 100.0])
    folds = np.array([0, 0, 1, 1])
    widths = cross_widths(scores, np.array([1.0, 2.0, 1.0, 1.0]), folds, 0.5)
    assert widths.tolist() == [100.0, 200.0, 2.0, 2.0]


def test_intervals_are_described_by_difficulty() -> None:
    scale = np.arange(6.0)
    said = describe_intervals(np.array([0, 0, 0, 3, -3, 0.0]), np.full(6, 2.0), scale)
    assert said == {
        "n": 6,
        "coverage": pytest.approx(4 / 6),
        "width": 4.0,
        "coverage_by_difficulty": [1.0, 0.5, 0.5],
    }
    none = describe_intervals(np.empty(0), np.empty(0), np.empty(0))
    assert none["coverage"] is None
    assert none["coverage_by_difficulty"] == [None, None, None]

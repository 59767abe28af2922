"""Scores of probabilities, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from molscore.stats.reliability import probability_scores, reliability_table


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 300)
    y = (rng.uniform(size=300) < p).astype(np.float64)
    ours = probability_scores(y, p)
    assert ours["log_loss"] == pytest.approx(log_loss(y, p))
    assert ours["brier"] == pytest.approx(brier_score_loss(y, p))


def test_certain_errors_stay_finite_and_nothing_has_no_score() -> None:
    assert np.isfinite(probability_scores(np.array([1.0]), np.array([0.0]))["log_loss"])
    assert probability_scores(np.empty(0), np.empty(0)) == {"log_loss": None, "brier": None}


def test_a_table_has_a_row_for_each_part_that_holds_any() -> None:
    p = np.array([0.0, 0.05, 0.5, 0.55, 1.0])
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    table = reliability_table(y, p)
    assert [(row["from"], row["n"], row["observed"]) for row in table] == [
        (0.0, 2, 0.5),
        (0.5, 2, 0.5),
        (0.9, 1, 1.0),
    ]
    assert table[0]["predicted"] == pytest.approx(0.025)

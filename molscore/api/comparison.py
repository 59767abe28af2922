"""Predictions against measured values: errors, intervals, domain, probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.data.targets import Target
from molscore.predict.core import ChunkResult
from molscore.predict.layout import Answer
from molscore.stats.conformal import describe_intervals
from molscore.stats.metrics import Metrics, classification_metrics, regression_metrics
from molscore.stats.reliability import reliability_table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """Row by row: the predictions, and whether the structure was in training, bool [n]."""

    result: ChunkResult
    answer: Answer
    in_training: NDArray[np.bool_]

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Rows with a prediction."""
        return np.array([status == "ok" for status in self.result.status], dtype=np.bool_)

    def parts(self, ok: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
        """Return the rows of each part that metrics are given for."""
        return {"all": ok, "unseen": ok & ~self.in_training, "seen": ok & self.in_training}

    def inside(self) -> NDArray[np.bool_] | None:
        """Return whether each row is in the domain of the model; None where it cannot tell."""
        if "in_domain" not in self.answer.extras:
            return None
        column = self.answer.extras.index("in_domain")
        cells = [row[column] for row in self.result.extras]
        known = any(cell in ("yes", "no") for cell in cells)
        return np.array([cell == "yes" for cell in cells]) if known else None


def compare_values(
    rows: Predictions, t: int, target: Target, measured: Floats
) -> dict[str, Metrics]:
    """Return the metrics of one target over all rows, those seen in training and the others."""
    y, p = target.forward(measured), target.forward(rows.result.values[:, t])
    ok = rows.ok & np.isfinite(p)  # a prediction so small that its logarithm is gone
    return {name: _score(target, y[part], p[part]) for name, part in rows.parts(ok).items()}


def _score(target: Target, y: Floats, p: Floats) -> Metrics:
    score = classification_metrics if target.kind == "classification" else regression_metrics
    return score(y, p)


def compare_intervals(
    rows: Predictions, t: int, target: Target, measured: Floats
) -> dict[str, dict[str, Any]]:
    """Return how many values lie in their intervals, in the unit the model learns."""
    result = rows.result
    ends = (result.values[:, t], result.lower[:, t], result.upper[:, t])
    y, (p, low, high) = target.forward(measured), map(target.forward, ends)
    half = (high - low) / 2
    there = rows.ok & np.isfinite(y) & np.isfinite(p) & np.isfinite(half)
    return {
        name: describe_intervals((y - p)[part], half[part], half[part])
        for name, part in rows.parts(there).items()
    }


def compare_domain(
    rows: Predictions, t: int, target: Target, measured: Floats, inside: NDArray[np.bool_]
) -> dict[str, Metrics]:
    """Return the metrics inside and outside the domain of the model, among unseen structures."""
    y, p = target.forward(measured), target.forward(rows.result.values[:, t])
    unseen = rows.ok & np.isfinite(p) & ~rows.in_training
    parts = {"inside": unseen & inside, "outside": unseen & ~inside}
    return {name: _score(target, y[part], p[part]) for name, part in parts.items()}


def compare_reliability(rows: Predictions, t: int, measured: Floats) -> list[dict[str, Any]]:
    """Return what became of probabilities of like size, among unseen structures."""
    p = rows.result.values[:, t]
    there = rows.ok & np.isfinite(measured) & ~rows.in_training
    return reliability_table(measured[there], p[there])

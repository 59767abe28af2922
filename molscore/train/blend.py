"""Networks and trees averaged: y = w * network + (1 - w) * trees, one w a target.

The average is taken where the model learns: transformed units, or logits. What ships uses the w
that suits all out-of-fold predictions best. The figures of the cross-validation may not: for
the rows of a fold, w is fitted on the rows of the other folds alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.summary import sigmoid
from molscore.bundle.trees import WEIGHT
from molscore.data.targets import Target
from molscore.train.assess import OutOfFold, assess, gather, report
from molscore.train.data import TrainingData
from molscore.train.result import ExpertResult

EVEN: Final = 0.5
"""The weight where nothing speaks for another: no out-of-fold rows, or equal predictions."""

_HALVINGS: Final = 40

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Joined:
    """What a bundle is made of, and how it was judged.

    Attributes:
        experts: the arrays of each expert of the bundle.
        oof: out-of-fold predictions.
        parts: of a blend, the predictions of `graph` and `trees` alone.
        weights: of a blend, float64 [n_targets], the shares of the network that ship.
        fold_weights: of a blend, fold -> float64 [n_targets], those the figures come from.
    """

    experts: list[dict[str, NDArray[Any]]]
    oof: OutOfFold
    parts: dict[str, OutOfFold] = field(default_factory=dict)
    weights: Floats | None = None
    fold_weights: dict[int, Floats] = field(default_factory=dict)

    def metrics(
        self,
        data: TrainingData,
        targets: Sequence[Target],
        known: NDArray[np.bool_] | None = None,
    ) -> dict[str, Any]:
        """Return the metrics of `assess`; of a blend also those of its parts, and its weights."""
        metrics = assess(data, targets, self.oof, known)
        for name, oof in self.parts.items():
            kept = ("folds", "mean", "sd", "pooled", "averaged_mean")
            for of_target, of_part in assess(data, targets, oof).items():
                metrics[of_target][name] = {k: of_part[k] for k in kept if k in of_part}
        if self.weights is not None:
            for t, target in enumerate(targets):
                metrics[target.name]["weight"] = {
                    "graph": float(self.weights[t]),
                    "folds": [
                        {"fold": fold, "graph": float(w[t])}
                        for fold, w in self.fold_weights.items()
                    ],
                }
        return metrics


def join(data: TrainingData, results: Sequence[ExpertResult], n_repeats: int) -> Joined:
    """Join experts of one kind: each is an expert of the bundle."""
    raw = gather(data, results, n_repeats)
    return Joined([dict(r.weights) for r in results], report(data, raw))


def join_blend(
    data: TrainingData,
    networks: Sequence[ExpertResult],
    trees: Sequence[ExpertResult],
    n_repeats: int,
) -> Joined:
    """Join networks and trees of the same folds, pair by pair."""
    a, b = gather(data, networks, n_repeats), gather(data, trees, n_repeats)
    folds = sorted(set(data.folds[data.folds >= 0].tolist()))
    fold_weights = {fold: _fit(data, a, b, data.folds != fold) for fold in folds}
    weights = _fit(data, a, b, np.ones(len(data), dtype=np.bool_))
    blended = np.full_like(a, np.nan)
    for fold, w in fold_weights.items():
        rows = data.folds == fold
        blended[:, rows] = w * a[:, rows] + (1.0 - w) * b[:, rows]
    experts = [
        {**network.weights, **tree.weights, WEIGHT: weights.astype(np.float32)}
        for network, tree in zip(networks, trees, strict=True)
    ]
    parts = {"graph": report(data, a), "trees": report(data, b)}
    return Joined(experts, report(data, blended), parts, weights, fold_weights)


def _fit(data: TrainingData, a: Floats, b: Floats, rows: NDArray[np.bool_]) -> Floats:
    """Return the best weight of each target over some rows, [n_targets]."""
    weights = [
        fit_weight(
            np.tile(data.values[rows, t], len(a)),
            a[:, rows, t].reshape(-1),
            b[:, rows, t].reshape(-1),
            is_class=is_class,
        )
        for t, is_class in enumerate(data.is_class)
    ]
    return np.array(weights)


def fit_weight(y: Floats, a: Floats, b: Floats, *, is_class: bool) -> float:
    """Return the w in [0, 1] for which w a + (1 - w) b comes closest to y.

    Closest in squared error, or for a class in cross-entropy with a and b as logits; both are
    convex in w.

    Args:
        y: measured values [n], NaN where there is none; 0 or 1 for a class.
        a: predictions of the network [n], NaN where there is none.
        b: predictions of the trees, likewise.
        is_class: whether y is a class.
    """
    there = np.isfinite(y) & np.isfinite(a) & np.isfinite(b)
    y, b, d = y[there], b[there], (a - b)[there]
    if not d.any():
        return EVEN
    if not is_class:
        return float(np.clip(d @ (y - b) / (d @ d), 0.0, 1.0))

    def slope(w: float) -> float:
        return float((sigmoid(b + w * d) - y) @ d)

    if slope(0.0) >= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    if slope(1.0) <= 0.0:
        return 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)

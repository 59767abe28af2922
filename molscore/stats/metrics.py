"""Scores of predictions against measured values, for one target at a time.

A score that does not exist for the given values (a correlation with a constant, a ROC curve
of one class, anything of an empty set) is `None`, never NaN or infinity, so that tables and
JSON files can say "undefined" instead of printing a number that is not one.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Metrics: TypeAlias = dict[str, float | None]
"""Metric name to value; `n` counts the pairs used and is never `None`."""

Floats: TypeAlias = npt.NDArray[np.float64]

REGRESSION_METRICS = ("rmse", "mae", "r2", "spearman", "n")
CLASSIFICATION_METRICS = ("roc_auc", "pr_auc", "mcc", "n")

DECISION_THRESHOLD = 0.5
"""Probability from which a prediction counts as the positive class in `mcc`."""


def regression_metrics(y: npt.ArrayLike, p: npt.ArrayLike) -> Metrics:
    """Return `rmse`, `mae`, `r2`, `spearman` and `n` of predictions `p` for values `y`.

    `r2` is the coefficient of determination, 1 - SSE / SST, which is negative for predictions
    worse than the mean of `y`; it needs two different values in `y`. `spearman` needs two
    different values on both sides.

    Args:
        y: measured values [n]; NaN marks a gap and leaves the pair out.
        p: predicted values [n], in the unit of `y`. They must be finite wherever `y` is
            present: a missing prediction is not a gap in the data.

    Raises:
        ValueError: for shapes other than two equal 1-D ones, or non-finite values.
    """
    y_, p_ = _pairs(y, p)
    n = len(y_)
    if n == 0:
        return {**dict.fromkeys(REGRESSION_METRICS), "n": 0}
    # Squares of float64 can leave its range at both ends; what then has no value says so.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        error = p_ - y_
        return {
            "rmse": _finite(np.sqrt(np.mean(error**2))),
            "mae": _finite(np.mean(np.abs(error))),
            "r2": _r2(y_, error),
            "spearman": _pearson(_ranks(y_), _ranks(p_)),
            "n": n,
        }


def classification_metrics(y: npt.ArrayLike, p: npt.ArrayLike) -> Metrics:
    """Return `roc_auc`, `pr_auc`, `mcc` and `n` of probabilities `p` for classes `y`.

    `pr_auc` is the average precision, sum over thresholds of (R_k - R_{k-1}) P_k, as in
    scikit-learn's `average_precision_score`; the trapezoid under the curve is too optimistic
    (Davis and Goadrich 2006, doi 10.1145/1143844.1143874). `mcc` takes the classes at
    `DECISION_THRESHOLD`. `roc_auc` and `mcc` need both classes in `y`, `pr_auc` a positive
    one; `mcc` also needs both classes among the predictions.

    Args:
        y: classes [n], 0 or 1; NaN marks a gap and leaves the pair out.
        p: probability of class 1 [n], in [0, 1]; finite wherever `y` is present.

    Raises:
        ValueError: for shapes other than two equal 1-D ones, non-finite values, classes
            other than 0 and 1, or probabilities outside [0, 1].
    """
    y_, p_ = _pairs(y, p)
    if not np.isin(y_, (0.0, 1.0)).all():
        raise ValueError("classes must be 0 or 1")
    if ((p_ < 0) | (p_ > 1)).any():
        raise ValueError("probabilities must lie in [0, 1]")
    positive = y_ == 1.0
    return {
        "roc_auc": _roc_auc(positive, p_),
        "pr_auc": _average_precision(positive, p_),
        "mcc": _matthews(positive, p_ >= DECISION_THRESHOLD),
        "n": len(y_),
    }


def _pairs(y: npt.ArrayLike, p: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the pairs whose measured value is present, as two float64 arrays [n]."""
    y_, p_ = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if y_.ndim != 1 or y_.shape != p_.shape:
        raise ValueError(f"expected two equal 1-D shapes, got {y_.shape} and {p_.shape}")
    present = ~np.isnan(y_)
    y_, p_ = y_[present], p_[present]
    if not (np.isfinite(y_).all() and np.isfinite(p_).all()):
        raise ValueError("values and predictions must be finite")
    return y_, p_


def _r2(y: Floats, error: Floats) -> float | None:
    """Return 1 - SSE / SST, or None where `y` does not vary."""
    if _constant(y):
        return None
    return _finite(1.0 - np.sum(error**2) / np.sum((y - y.mean()) ** 2))


def _pearson(a: Floats, b: Floats) -> float | None:
    """Return the correlation of `a` and `b` [n], or None where one of them does not vary."""
    if _constant(a) or _constant(b):
        return None
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _ranks(x: Floats) -> Floats:
    """Return ranks 1..n of `x` [n]; ties share the mean of their ranks."""
    _, group, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[group]
    return ranks


def _roc_auc(positive: npt.NDArray[np.bool_], score: Floats) -> float | None:
    """Return P(score of a positive > score of a negative), ties counting one half.

    Computed from the rank sum of the positives (Mann-Whitney U).
    """
    n_pos = int(positive.sum())
    n_neg = len(positive) - n_pos
    if n_pos == 0 or n_neg == 0:
        return None
    u = _ranks(score)[positive].sum() - n_pos * (n_pos + 1) / 2
    return float(u / (n_pos * n_neg))


def _average_precision(positive: npt.NDArray[np.bool_], score: Floats) -> float | None:
    """Return the precision averaged over the positives, equal scores being one threshold."""
    n_pos = int(positive.sum())
    if n_pos == 0:
        return None
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(positive[order])
    # The last row of every run of equal scores: a threshold cannot fall between equal ones.
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    precision = hits[ends] / (ends + 1)
    gained = np.diff(hits[ends], prepend=0)
    return float(np.sum(gained * precision) / n_pos)


def _matthews(positive: npt.NDArray[np.bool_], called: npt.NDArray[np.bool_]) -> float | None:
    """Return the Matthews correlation: Pearson's for two binary vectors."""
    return _pearson(positive.astype(np.float64), called.astype(np.float64))


def _constant(x: Floats) -> bool:
    """Tell whether `x` has fewer than two different values.

    Compared as values, since the variance of equal floats need not be exactly 0.
    """
    return len(x) == 0 or bool((x == x[0]).all())


def _finite(value: np.floating[Any]) -> float | None:
    """Return `value`, or None where a square over- or underflowed and left no finite number."""
    return float(value) if np.isfinite(value) else None

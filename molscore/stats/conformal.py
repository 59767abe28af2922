"""Intervals from the residuals of held-out rows, and how many values they hold.

Source: Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World; Vovk (2015),
doi 10.1007/s10472-013-9368-4 (cross-conformal predictors); Papadopoulos et al. (2011), doi
10.1613/jair.3198 (normalised scores).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def conformal_quantile(scores: Floats, level: float) -> float:
    """Return the score that a new row's is at most with a probability of at least `level`.

    That is the k-th smallest of n, k = ceil(level * (n + 1)), if the new row and the n are
    exchangeable.

    Args:
        scores: float64 [n], sorted.
        level: between 0 and 1.

    Returns:
        A score; infinity where n is too small for the level.
    """
    k = math.ceil(round(level * (len(scores) + 1), 9))
    return float(scores[k - 1]) if 1 <= k <= len(scores) else math.inf


def cross_widths(scores: Floats, scale: Floats, folds: NDArray[np.int64], level: float) -> Floats:
    """Return the half width of each row's interval, from the rows of the other folds alone.

    Args:
        scores: float64 [n], size of the residual over the scale.
        scale: float64 [n], what the score is multiplied with.
        folds: int64 [n].
        level: between 0 and 1.
    """
    widths = np.empty(len(scores))
    for fold in np.unique(folds):
        held_out = folds == fold
        widths[held_out] = conformal_quantile(np.sort(scores[~held_out]), level) * scale[held_out]
    return widths


def describe_intervals(
    residuals: Floats, widths: Floats, scale: Floats, parts: int = 3
) -> dict[str, Any]:
    """Return how many rows lie in their intervals, and how wide those are.

    Args:
        residuals: float64 [n], measured less predicted.
        widths: float64 [n], half of each interval.
        scale: float64 [n], by which rows are ordered into equal parts, the easy ones first.
        parts: how many.

    Returns:
        `n`, `coverage`, `width` (mean of whole intervals), and `coverage_by_difficulty`, one
        share a part, None where a part is empty.
    """
    n = len(residuals)
    inside = np.abs(residuals) <= widths
    ranks = np.argsort(np.argsort(scale, kind="stable"), kind="stable")
    part_of = ranks * parts // max(1, n)
    return {
        "n": n,
        "coverage": _mean(inside),
        "width": _mean(2 * widths),
        "coverage_by_difficulty": [_mean(inside[part_of == part]) for part in range(parts)],
    }


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None

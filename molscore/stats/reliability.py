"""Whether probabilities mean what they say."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST = 1e-15


def probability_scores(y: Floats, p: Floats) -> dict[str, float | None]:
    """Return `log_loss` (natural logarithm) and `brier` of probabilities; None for no rows.

    Args:
        y: classes [n], 0 or 1.
        p: probability of class 1 [n], in [0, 1].
    """
    if not len(y):
        return {"log_loss": None, "brier": None}
    of_truth = np.where(y == 1.0, p, 1.0 - p)
    return {
        "log_loss": float(-np.log(np.maximum(of_truth, _LEAST)).mean()),
        "brier": float(((p - y) ** 2).mean()),
    }


def reliability_table(y: Floats, p: Floats, bins: int = 10) -> list[dict[str, Any]]:
    """Return what became of predictions of like probability.

    Args:
        y: classes [n], 0 or 1.
        p: probability of class 1 [n], in [0, 1].
        bins: equal parts of [0, 1].

    Returns:
        A row for every part that holds any: its ends `from` and `to`, `n`, the mean
        `predicted` probability, and the `observed` share of class 1.
    """
    part = np.minimum((p * bins).astype(np.int64), bins - 1)
    return [
        {
            "from": i / bins,
            "to": (i + 1) / bins,
            "n": int(chosen.sum()),
            "predicted": float(p[chosen].mean()),
            "observed": float(y[chosen].mean()),
        }
        for i in range(bins)
        if (chosen := part == i).any()
    ]

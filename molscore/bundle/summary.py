"""From raw outputs of the experts to what a user reads."""

import numpy as np
from numpy.typing import NDArray

from molscore.data.targets import Target

Floats = NDArray[np.float64]


def to_reported(outputs: NDArray[np.float32], target: Target) -> Floats:
    """Return raw outputs of one target in the unit of the table, or as probabilities.

    Args:
        outputs: float32 of any shape: transformed units, or logits.
        target: whose they are.

    Returns:
        float64 of the same shape; what overflows becomes infinite.
    """
    raw = outputs.astype(np.float64)
    if target.kind == "classification":
        return sigmoid(raw)
    with np.errstate(all="ignore"):
        return target.inverse(raw)


def sigmoid(logits: Floats) -> Floats:
    """Return the probability of each logit; a huge negative one gives 0 without a warning."""
    with np.errstate(all="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def combine(reported: Floats) -> tuple[Floats, Floats]:
    """Return mean and spread over the experts.

    Args:
        reported: float64 [n_experts, ...].

    Returns:
        Mean and sample standard deviation (n - 1 in the denominator), [...]; the latter is NaN
        for a single expert.
    """
    with np.errstate(all="ignore"):
        mean = reported.mean(axis=0)
        if len(reported) == 1:
            return mean, np.full_like(mean, np.nan)
        return mean, reported.std(axis=0, ddof=1)

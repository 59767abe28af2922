"""From raw outputs of the experts to what a user reads."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from molscore.data.targets import Target

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassCalibration:
    """Makes logits those of honest probabilities: slope * logit + intercept.

    Source: Platt (1999), Probabilistic outputs for support vector machines.
    """

    slope: float
    intercept: float

    def logits(self, raw: Floats) -> Floats:
        """Return what the logits of an expert become."""
        return raw * self.slope + self.intercept


def to_reported(
    outputs: NDArray[np.float32], target: Target, calibration: ClassCalibration | None = None
) -> Floats:
    """Return raw outputs of one target in the unit of the table, or as probabilities.

    Args:
        outputs: float32 of any shape: transformed units, or logits.
        target: whose they are.
        calibration: of a class; None takes the logits as they are.

    Returns:
        float64 of the same shape; what overflows becomes infinite.
    """
    raw = outputs.astype(np.float64)
    if target.kind == "classification":
        if calibration is not None:
            raw = calibration.logits(raw)
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

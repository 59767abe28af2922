"""How large an error to expect of a prediction, from a few facts about it.

log(scale) = intercept + sum over features j of g_j(x_j)

with g_j piecewise linear and flat beyond its outer knots: a generalised additive model (Hastie and
Tibshirani 1986, doi 10.1214/ss/1177013604), small enough to be stored and read as a table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST = 30.0
"""Of a logarithm: what lies beyond is the same to anyone, and its exponential stays finite."""


@dataclass(frozen=True, eq=False)
class Difficulty:
    """A scale for residuals.

    Attributes:
        intercept: log of the scale where no step is climbed.
        feature: int64 [n_steps], the feature a step belongs to.
        start: float64 [n_steps], where it begins.
        end: float64 [n_steps], where it ends; behind its start.
        climb: float64 [n_steps], what it adds to the logarithm from start to end.
    """

    intercept: float
    feature: NDArray[np.int64]
    start: Floats
    end: Floats
    climb: Floats

    def scale(self, features: Floats) -> Floats:
        """Return the expected size of the error, float64 [n], for features [n, n_features]."""
        steps = climbed(features, self.feature, self.start, self.end)
        # Term by term: a matrix product may sum in an order that depends on the number of rows.
        log = np.full(len(features), self.intercept)
        for column, climb in zip(steps.T, self.climb, strict=True):
            log += column * climb
        scale: Floats = np.exp(np.clip(log, -_LARGEST, _LARGEST))
        return scale


def climbed(features: Floats, feature: NDArray[np.int64], start: Floats, end: Floats) -> Floats:
    """Return which share of each step is climbed, in [0, 1], float64 [n, n_steps]."""
    share: Floats = np.clip((features[:, feature] - start) / (end - start), 0.0, 1.0)
    return share

"""Probabilities that mean what they say, learned from held-out logits."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.summary import ClassCalibration, sigmoid
from molscore.stats.reliability import probability_scores

MIN_ROWS: Final = 30
"""Rows from which a calibration is fitted."""

_LARGEST_LOGIT: Final = 30.0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def calibrate(y: Floats, p: Floats, folds: Ints) -> tuple[ClassCalibration | None, dict[str, Any]]:
    """Fit the calibration of a class, and judge it fold by fold with fits on the others."""
    with np.errstate(divide="ignore"):
        logits = np.clip(np.log(p) - np.log1p(-p), -_LARGEST_LOGIT, _LARGEST_LOGIT)
    ships = _fit_platt(logits, y)
    if ships is None:
        return None, {}
    honest = p.copy()
    for fold in np.unique(folds):
        held_out = folds == fold
        fitted = _fit_platt(logits[~held_out], y[~held_out])
        if fitted is not None:
            honest[held_out] = sigmoid(fitted.logits(logits[held_out]))
    said = {
        "slope": ships.slope,
        "intercept": ships.intercept,
        "before": probability_scores(y, p),
        "after": probability_scores(y, honest),
    }
    return ships, {"calibration": said}


def _fit_platt(logits: Floats, y: Floats) -> ClassCalibration | None:
    """Fit slope and intercept; None where there is one class, or the logits say nothing."""
    if len(y) < MIN_ROWS or len(np.unique(y)) < 2:
        return None
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (start-up)

    # Weakly regularised: a perfect separation has no finite fit.
    fitted = LogisticRegression(C=100.0, max_iter=1000).fit(logits[:, None], y)
    slope, intercept = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    return ClassCalibration(slope, intercept) if slope > 0 else None

"""What a model can say about its own errors, learned from its cross-validation.

Everything comes from held-out predictions: an expert's residual on a row it never saw, the row's
neighbours among the structures of other folds, and a scale fitted without the residuals of the
row's fold. The interval of a new molecule is the prediction plus and minus a quantile of the scaled
residuals times its own scale. Rows of other folds taught the expert that a row is judged by, so no
theorem for finite samples holds; `benchmarks/trust` measures what does. See
`molscore.stats.conformal` for sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import CALIBRATION_PREFIX
from molscore.bundle.similarity_graph import SimilaritySearch
from molscore.bundle.tensors import Arrays
from molscore.data.targets import Target
from molscore.stats.conformal import cross_widths, describe_intervals
from molscore.stats.difficulty import Difficulty, climbed
from molscore.train.assess import OutOfFold, average
from molscore.train.calibration import calibrate
from molscore.train.prepare import Prepared
from molscore.trust.features import (
    N_NEIGHBOURS,
    Neighbours,
    difficulty_features,
    shape_features,
)
from molscore.trust.judge import neighbours_of
from molscore.trust.stored import MAX_STRUCTURES, Interval, Structures, Trust

LEVEL: Final = 0.9
"""The share that the figures of a training run are about."""

OUTSIDE: Final = 0.1
"""Share of the held-out rows that are farther from the structures of other folds than the threshold
of the domain."""

MIN_ROWS: Final = 30
"""Rows from which the scale of residuals depends on anything."""

KNOTS: Final = 4
RIDGE: Final = 10.0
"""Of the scale: knots of a feature, and weight of the penalty on what a step adds, which falls with
the root of the number of rows."""

MAX_SCORES: Final = 20_000
_TAIL: Final = 0.02
_LEAST: Final = 1e-3

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fitted:
    """What a bundle is given beside its experts.

    Attributes:
        arrays: under `trust/` and `calibration/`.
        figures: target name -> what the cross-validation shows of it, for the metrics.
    """

    arrays: Arrays
    figures: Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class _Around:
    """Each row's nearest among the structures of other folds.

    Attributes:
        structures: those that the bundle carries.
        similarity: float64 [n, k]; NaN for a row that was not looked up.
        index: int64 [n, k], which structures.
    """

    structures: Structures
    similarity: Floats
    index: Ints


def fit_trust(
    prepared: Prepared, targets: Sequence[Target], oof: OutOfFold, *, structures: bool
) -> Fitted:
    """Learn what to say beside predictions.

    Args:
        prepared: what was trained on.
        targets: what is predicted.
        oof: held-out predictions.
        structures: whether the bundle may carry structures.
    """
    n = len(prepared.keys)  # behind them, students have molecules without measured values
    folds = prepared.data.folds[:n]
    values = prepared.data.values[:n]
    predicted = average(targets, oof)[:n]
    around = _look_around(prepared, values, folds) if structures else None
    shape = shape_features(prepared.data.graphs)[:n]
    intervals: list[Interval | None] = []
    arrays: Arrays = {}
    figures: dict[str, dict[str, Any]] = {}
    for t, target in enumerate(targets):
        y, p = values[:, t], predicted[:, t]
        there = np.isfinite(y) & np.isfinite(p) & (folds >= 0)
        interval: Interval | None = None
        said: dict[str, Any] = {}
        if target.kind == "classification":
            calibration, said = calibrate(y[there], p[there], folds[there])
            if calibration is not None:
                arrays[f"{CALIBRATION_PREFIX}{t}"] = np.array(
                    [calibration.slope, calibration.intercept]
                )
        elif there.any():
            neighbours = (
                None
                if around is None
                else neighbours_of(around.structures, around.similarity, around.index, t)
            )
            interval, said = _fit_interval(y, p, shape, neighbours, folds, there)
            if around is not None:
                said["domain"] = _describe_domain(around.similarity[:, 0], y - p, folds, there)
        intervals.append(interval)
        figures[target.name] = said
    trust = Trust(prepared.atoms, None if around is None else around.structures, tuple(intervals))
    return Fitted(arrays | trust.to_arrays(), figures)


def _look_around(prepared: Prepared, values: Floats, folds: Ints) -> _Around | None:
    """Find the neighbours of every row among the structures to be carried; None for too few."""
    keys = np.array(prepared.keys)
    _, first, of_row = np.unique(keys, return_index=True, return_inverse=True)
    means = _mean_of_groups(values, of_row, len(first))
    chosen = np.argsort(first)  # in the order of the table, so that a stored list reads like it
    if len(chosen) > MAX_STRUCTURES:
        some = np.random.default_rng(0).choice(len(chosen), MAX_STRUCTURES, replace=False)
        chosen = chosen[np.sort(some)]
    rows = first[chosen]
    similarity, index = _neighbours_elsewhere(
        prepared.fingerprints, folds, of_row, prepared.fingerprints[rows], folds[rows], chosen
    )
    if not similarity.shape[1]:
        return None
    nearest = similarity[:, 0]
    stored = Structures(
        fingerprints=prepared.fingerprints[rows],
        values=means[chosen],
        smiles=tuple(prepared.smiles[i] for i in rows),
        threshold=float(np.quantile(nearest[np.isfinite(nearest)], OUTSIDE)),
    )
    return _Around(stored, similarity, index)


def _neighbours_elsewhere(
    fingerprints: NDArray[np.uint8],
    folds: Ints,
    structures: Ints,
    stored: NDArray[np.uint8],
    stored_folds: Ints,
    stored_structures: Ints,
) -> tuple[Floats, Ints]:
    """Return similarity and number [n, k] of each row's nearest stored structures in other folds.

    Without folds, of the nearest that are not its own. NaN for rows that are never held out.

    Args:
        fingerprints: uint8 [n, n_bytes], of the rows.
        folds: int64 [n].
        structures: int64 [n], number of the structure of each row.
        stored: uint8 [m, n_bytes], fingerprints of different structures.
        stored_folds: int64 [m].
        stored_structures: int64 [m], their numbers.
    """
    n, m = len(folds), len(stored_folds)
    if (folds < 0).all():
        k = min(N_NEIGHBOURS, m - 1)
        similarity, index = SimilaritySearch(stored, k + 1).nearest(fingerprints)
        own = stored_structures[index] == structures[:, None]
        own[~own.any(axis=1), -1] = True  # one too many, where it is not among its nearest
        return similarity[~own].reshape(n, k), index[~own].reshape(n, k)
    parts = [fold for fold in np.unique(folds) if fold >= 0]
    k = min(N_NEIGHBOURS, *(int((stored_folds != fold).sum()) for fold in parts))
    similarity, index = np.full((n, k), np.nan), np.zeros((n, k), dtype=np.int64)
    for fold in parts if k else []:
        inside, elsewhere = np.flatnonzero(folds == fold), np.flatnonzero(stored_folds != fold)
        near, which = SimilaritySearch(stored[elsewhere], k).nearest(fingerprints[inside])
        similarity[inside], index[inside] = near, elsewhere[which]
    return similarity, index


def _mean_of_groups(values: Floats, group: Ints, n: int) -> NDArray[np.float32]:
    """Return the mean of the values there are, float32 [n, n_targets]; NaN for none."""
    total, count = np.zeros((n, values.shape[1])), np.zeros((n, values.shape[1]))
    there = np.isfinite(values)
    np.add.at(total, group, np.where(there, values, 0.0))
    np.add.at(count, group, there)
    with np.errstate(invalid="ignore"):
        return (total / count).astype(np.float32)


def _fit_interval(
    y: Floats,
    p: Floats,
    shape: Floats,
    neighbours: Neighbours | None,
    folds: Ints,
    there: NDArray[np.bool_],
) -> tuple[Interval, dict[str, Any]]:
    """Return the intervals of a target, and what its cross-validation shows of them."""
    residuals, folds = (y - p)[there], folds[there]
    size = np.abs(residuals)
    usual = float(size.mean())
    around = None if neighbours is None else Neighbours(*(a[there] for a in neighbours))
    features = difficulty_features(p[there], shape[there], around)
    scale = np.empty_like(size)
    for fold in np.unique(folds):
        held_out = folds == fold
        fitted = fit_difficulty(features[~held_out], size[~held_out], usual)
        scale[held_out] = fitted.scale(features[held_out])
    scores = size / scale
    interval = Interval(fit_difficulty(features, size, usual), _thinned(np.sort(scores)))
    widths = cross_widths(scores, scale, folds, LEVEL)
    even = cross_widths(size, np.ones_like(size), folds, LEVEL)
    said = {"level": LEVEL, **describe_intervals(residuals, widths, scale)}
    said["constant_width"] = describe_intervals(residuals, even, scale)["width"]
    return interval, {"interval": said}


def _thinned(scores: Floats) -> Floats:
    """Return at most `MAX_SCORES` of sorted scores, whose quantiles are no smaller than of all."""
    n = len(scores)
    if n <= MAX_SCORES:
        return scores
    ranks = np.ceil(np.arange(1, MAX_SCORES + 1) * (n + 1) / (MAX_SCORES + 1)).astype(np.int64)
    return np.asarray(scores[np.minimum(ranks, n) - 1])


def fit_difficulty(features: Floats, size: Floats, usual: float) -> Difficulty:
    """Fit the scale of residuals: a gamma regression with a logarithmic link and a ridge.

    Args:
        features: float64 [n, n_features].
        size: float64 [n], of the residuals.
        usual: their mean; what is taken where n is too small to tell more.
    """
    least = max(_LEAST * usual, np.finfo(np.float64).tiny)
    steps = [
        (j, start, end)
        for j, column in enumerate(features.T if len(size) >= MIN_ROWS else ())
        for start, end in _steps(column)
    ]
    if not steps or not size.any():
        nothing = np.empty(0)
        return Difficulty(
            float(np.log(max(usual, least))), nothing.astype(np.int64), nothing, nothing, nothing
        )
    from sklearn.linear_model import GammaRegressor  # noqa: PLC0415 (start-up)

    feature = np.array([j for j, _, _ in steps])
    start, end = np.array([(a, b) for _, a, b in steps]).T
    fitted = GammaRegressor(alpha=RIDGE / len(size) ** 0.5, max_iter=10_000, tol=1e-6).fit(
        climbed(features, feature, start, end), np.maximum(size, least)
    )
    return Difficulty(float(fitted.intercept_), feature, start, end, fitted.coef_)


def _steps(column: Floats) -> list[tuple[float, float]]:
    """Return the intervals between the knots of a feature; none for a constant."""
    knots = np.unique(np.quantile(column, np.linspace(_TAIL, 1 - _TAIL, KNOTS)))
    return list(zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True))


def _describe_domain(
    nearest: Floats, residuals: Floats, folds: Ints, there: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return the errors within and without the domain, its threshold set by the other folds."""
    nearest, residuals, folds = nearest[there], residuals[there], folds[there]
    outside = np.zeros(len(folds), dtype=np.bool_)
    for fold in np.unique(folds):
        held_out = folds == fold
        others = nearest[~held_out]
        if len(others):
            outside[held_out] = nearest[held_out] < np.quantile(others, OUTSIDE)
    return {
        "outside": float(outside.mean()),
        "rmse_inside": _rms(residuals[~outside]),
        "rmse_outside": _rms(residuals[outside]),
    }


def _rms(values: Floats) -> float | None:
    return float(np.sqrt(np.mean(values**2))) if len(values) else None

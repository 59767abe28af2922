"""The cross-validation of a run: out-of-fold predictions and their metrics."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.summary import sigmoid
from molscore.data.targets import Target
from molscore.stats.metrics import classification_metrics, regression_metrics
from molscore.train.data import TrainingData
from molscore.train.result import ExpertResult

Metrics = dict[str, float | None]


@dataclass(frozen=True)
class OutOfFold:
    """Predictions for rows by experts that never saw them.

    Attributes:
        predictions: float64 [n_repeats, n, n_targets] in (transformed) target units, class
            probabilities for classes; NaN for rows in no fold.
    """

    predictions: NDArray[np.float64]


def gather(
    data: TrainingData, experts: Sequence[ExpertResult], n_repeats: int
) -> NDArray[np.float64]:
    """Put the held-out predictions of all experts in the order of the rows.

    Returns:
        float64 [n_repeats, n, n_targets] as experts give them: logits for classes.
    """
    per_repeat = len(experts) // n_repeats
    out = np.full((n_repeats, len(data), data.n_targets), np.nan)
    for i, expert in enumerate(experts):
        out[i // per_repeat, expert.rows] = expert.predictions
    return out


def report(data: TrainingData, raw: NDArray[np.float64]) -> OutOfFold:
    """Turn what `gather` returns into what is judged: probabilities for classes."""
    classes = np.flatnonzero(data.is_class)
    out = raw.copy()
    out[:, :, classes] = sigmoid(out[:, :, classes])
    return OutOfFold(out)


def score(target: Target, y: NDArray[np.float64], p: NDArray[np.float64]) -> Metrics:
    """Return the metrics of one target over the rows that have both label and prediction."""
    there = np.isfinite(y) & np.isfinite(p)
    of = classification_metrics if target.kind == "classification" else regression_metrics
    return of(y[there], p[there])


def average(targets: Sequence[Target], oof: OutOfFold) -> NDArray[np.float64]:
    """Return the mean over the repeats [n, n_targets], in the units the model learns.

    The mean is taken in the unit of the table, where a bundle takes the mean of its experts.
    """
    if len(oof.predictions) == 1:
        return np.asarray(oof.predictions[0])
    columns = [
        target.forward(target.inverse(oof.predictions[:, :, t]).mean(axis=0))
        for t, target in enumerate(targets)
    ]
    return np.stack(columns, axis=1)


def assess(
    data: TrainingData,
    targets: Sequence[Target],
    oof: OutOfFold,
    known: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Return all cross-validation metrics.

    For every target: `folds`, the metrics of every single expert on its own held-out fold;
    `mean` and `sd` over those (the figure quoted for a single expert); `pooled`, over all rows
    at once with the repeats averaged; and, with several repeats, `averaged_mean`, the mean
    over folds with the repeats averaged. With `known` [n], the rows whose structures the model
    to start from was trained on, `others` holds `mean`, `pooled` and the number of the rest.

    Regression metrics are in the unit the model learns: the transformed one, if there is a
    transform.
    """
    averaged = average(targets, oof)
    fold_ids = sorted(set(data.folds[data.folds >= 0].tolist()))
    out: dict[str, Any] = {}
    for t, target in enumerate(targets):
        y = data.values[:, t]
        singles = _singles(data, target, t, oof, fold_ids)
        names = [k for k in (singles[0] if singles else {}) if k not in ("repeat", "fold", "n")]
        out[target.name] = {
            "kind": target.kind,
            "unit": target.unit,
            "transform": target.transform,
            "folds": singles,
            "mean": _means(singles, names),
            "sd": {k: _sd([s[k] for s in singles]) for k in names},
            "pooled": score(target, y, averaged[:, t]),
        }
        if len(oof.predictions) > 1:
            of_folds = [data.folds == fold for fold in fold_ids]
            ensembles = [score(target, y[rows], averaged[rows, t]) for rows in of_folds]
            out[target.name]["averaged_mean"] = _means(ensembles, names)
        if known is not None:
            others = _singles(data, target, t, oof, fold_ids, ~known)
            pooled = score(target, y[~known], averaged[~known, t])
            out[target.name]["others"] = {"mean": _means(others, names), "pooled": pooled}
    return out


def _singles(
    data: TrainingData,
    target: Target,
    t: int,
    oof: OutOfFold,
    fold_ids: Sequence[int],
    among: NDArray[np.bool_] | None = None,
) -> list[dict[str, Any]]:
    """Return the metrics of every single expert on its fold, or on those rows among it."""
    out = []
    for fold in fold_ids:
        rows = (data.folds == fold) & (True if among is None else among)
        y = data.values[rows, t]
        for repeat, p in enumerate(oof.predictions):
            out.append({"repeat": repeat, "fold": fold, **score(target, y, p[rows, t])})
    return out


def _means(scores: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Metrics:
    return {k: _mean([s[k] for s in scores]) for k in names}


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if there else None


def _sd(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.std(there, ddof=1)) if len(there) > 1 else None


def oof_csv(
    data: TrainingData,
    targets: Sequence[Target],
    oof: OutOfFold,
    measured: NDArray[np.float64],
) -> str:
    """Return the out-of-fold predictions as CSV text.

    Columns `row` (record number in the table, from 0), `fold`, `target` (the measured value)
    and `prediction`, both in the unit of the table; with several targets also `name`, with
    several repeats also `repeat`. Rows without a label of a target, or in no fold, are not
    there.

    Args:
        data: what was trained on.
        targets: what is predicted.
        oof: held-out predictions.
        measured: float64 [n_table_rows, n_targets], the values as they stand in the table.
    """
    n_repeats = len(oof.predictions)
    extra = (["name"] if len(targets) > 1 else []) + (["repeat"] if n_repeats > 1 else [])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "fold", "target", "prediction", *extra])
    for t, target in enumerate(targets):
        y = np.where(np.isfinite(data.values[:, t]), measured[data.table_rows, t], np.nan)
        for repeat in range(n_repeats):
            p = target.inverse(oof.predictions[repeat, :, t])
            for i in np.flatnonzero(np.isfinite(y) & np.isfinite(p)):
                row: list[Any] = [int(data.table_rows[i]), int(data.folds[i])]
                row += [repr(float(y[i])), f"{p[i]:.6g}"]
                row += [target.name] if len(targets) > 1 else []
                row += [repeat] if n_repeats > 1 else []
                writer.writerow(row)
    return text.getvalue()


def metrics_csv(metrics: dict[str, Any]) -> str:
    """Return the metrics of every fold as CSV text: name, repeat, fold, metric, value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "repeat", "fold", "metric", "value"])
    for name, of_target in metrics.items():
        for single in of_target["folds"]:
            for key, value in single.items():
                if key not in ("repeat", "fold"):
                    shown = "" if value is None else f"{value:.6g}"
                    writer.writerow([name, single["repeat"], single["fold"], key, shown])
    return text.getvalue()

"""One expert of gradient-boosted trees: CatBoost on scaled descriptors, kept as arrays.

One ensemble a target, on the rows that have a label of it. CatBoost's defaults, a fixed number
of trees and no evaluation set, so nothing is picked by a score.
"""

import importlib.util
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.archive import MEMBER_LIMITS
from molscore.bundle.signature import WEIGHTS_LOCATION
from molscore.bundle.trees import (
    DEPTH,
    FEATURE,
    MAX_TREES,
    NEVER,
    SHIFT,
    THRESHOLD,
    VALUES,
    evaluate_trees,
    tree_shapes,
)
from molscore.chem.descriptors import DescriptorScaler
from molscore.errors import ConfigError, MolscoreError
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.result import ExpertResult

AGREEMENT: Final = 1e-4
"""Largest difference between CatBoost and the arrays, in standard deviations of the target."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ensemble:
    """The trees of one target; see `molscore.bundle.trees` for the arrays.

    Attributes:
        feature: int64 [DEPTH, iterations].
        threshold: float32 [DEPTH, iterations].
        values: float64 [2^DEPTH, iterations].
        shift: what is added to the sum over the trees.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    values: Floats
    shift: float

    @classmethod
    def constant(cls, iterations: int, shift: float) -> "Ensemble":
        """Return trees that add nothing to `shift`."""
        return cls(
            np.zeros((DEPTH, iterations), dtype=np.int64),
            np.full((DEPTH, iterations), NEVER, dtype=np.float32),
            np.zeros((2**DEPTH, iterations)),
            shift,
        )


def require_trees(train: TrainConfig, n_targets: int) -> None:
    """Raise before anything is trained when trees cannot be trained, or their bundle not written.

    Raises:
        ConfigError: without CatBoost, with the command that installs it; on too many trees.
    """
    if n_targets * train.iterations > MAX_TREES:
        raise ConfigError(
            f"{train.iterations} trees for each of {n_targets} targets are more than the "
            f"{MAX_TREES} a bundle may hold: use fewer iterations"
        )
    shapes = tree_shapes(n_targets, train.iterations)
    size = train.n_experts * sum(
        math.prod(shape) * (8 if name == FEATURE else 4) for name, shape in shapes.items()
    )
    limit = MEMBER_LIMITS[WEIGHTS_LOCATION]
    if size > limit:
        raise ConfigError(
            f"{train.n_experts} experts of {train.iterations} trees for each of {n_targets} "
            f"targets take {size >> 20} MB, more than the {limit >> 20} a bundle may: use fewer "
            "iterations, folds or targets"
        )
    if importlib.util.find_spec("catboost") is None:
        raise ConfigError(
            "training trees needs catboost, which is not installed: "
            "pip install 'molscore[train,boost]'"
        )


def train_trees(
    data: TrainingData,
    train: TrainConfig,
    expert: int,
    *,
    scratch: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[ExpertResult, DescriptorScaler]:
    """Train the trees of one expert.

    Args:
        data: the whole data set, with descriptors.
        train: number of trees, folds, seed, threads.
        expert: number of the expert, repeat * K + fold.
        scratch: a folder for a temporary file; the system's by default.
        progress: told (targets done, mean loss of the last one) after every target.

    Raises:
        MolscoreError: when the arrays do not give what CatBoost predicts.
    """
    if data.descriptors is None:
        raise ValueError("trees need descriptors")
    fold = expert % train.folds
    rows, held_out = data.parts(fold)
    scaler = DescriptorScaler.fit(data.descriptors[rows])
    x = scaler.transform(data.descriptors)
    ensembles, losses = [], []
    for t in range(data.n_targets):
        seen = rows[np.isfinite(data.values[rows, t])]
        words = np.random.SeedSequence([train.seed, expert, t]).generate_state(1)
        ensemble, loss = _fit_target(
            x[seen],
            data.values[seen, t],
            is_class=data.is_class[t],
            train=train,
            seed=int(words[0]) >> 1,
            scratch=scratch,
        )
        ensembles.append(ensemble)
        losses.append(loss)
        if progress is not None:
            progress(t + 1, loss)
    arrays = _join(ensembles)
    predictions = evaluate_trees(arrays, x[held_out]).astype(np.float32)
    return ExpertResult(arrays, held_out, predictions, float(np.mean(losses))), scaler


def _join(ensembles: list[Ensemble]) -> dict[str, NDArray[Any]]:
    """Put the targets beside each other."""
    return {
        FEATURE: np.concatenate([e.feature for e in ensembles], axis=1).reshape(-1),
        THRESHOLD: np.concatenate([e.threshold for e in ensembles], axis=1).reshape(-1),
        VALUES: np.concatenate([e.values for e in ensembles], axis=1).astype(np.float32),
        SHIFT: np.array([e.shift for e in ensembles], dtype=np.float32),
    }


def _fit_target(
    x: NDArray[np.float32],
    y: Floats,
    *,
    is_class: bool,
    train: TrainConfig,
    seed: int,
    scratch: Path | None,
) -> tuple[Ensemble, float]:
    """Return the trees of one target and their mean loss on the rows they saw.

    The loss is in standardised units, or the cross-entropy.
    """
    shift, scale = _standardise(y, is_class=is_class)
    if len(y) < 2 or np.ptp(y) <= 1e-6 * abs(y[0]) or not np.ptp(x, axis=0).any():
        # CatBoost refuses what has nothing to learn, or nothing to learn from.
        return Ensemble.constant(train.iterations, shift), 0.0
    from catboost import CatBoost, CatBoostError  # noqa: PLC0415 (an extra of its own)

    z = y if is_class else (y - shift) / scale
    model = CatBoost(
        {
            "loss_function": "Logloss" if is_class else "RMSE",
            "iterations": train.iterations,
            "random_seed": seed,
            "thread_count": train.threads,
            "allow_writing_files": False,
            "logging_level": "Silent",
        }
    )
    try:
        model.fit(x, z)
    except CatBoostError as error:
        raise MolscoreError(f"CatBoost cannot learn from this target: {error}") from error
    ensemble = _read_trees(model, train.iterations, scratch)
    wanted = model.predict(x, prediction_type="RawFormulaVal")
    found = evaluate_trees(_join([ensemble]), x)[:, 0]
    if not np.abs(found - wanted).max() <= AGREEMENT:
        raise MolscoreError(
            f"the trees differ from CatBoost's prediction by {np.abs(found - wanted).max():.2g}; "
            "this version of CatBoost writes them in another form"
        )
    if is_class:
        # log(1 + e^-m), with m the logit in favour of the class that is right
        loss = np.logaddexp(0.0, -np.where(y > 0.5, found, -found))
        return ensemble, float(loss.mean())
    # The standardisation is undone in the trees themselves.
    undone = Ensemble(
        ensemble.feature,
        ensemble.threshold,
        ensemble.values * scale,
        shift + scale * ensemble.shift,
    )
    return undone, float(((found - z) ** 2).mean())


def _standardise(y: Floats, *, is_class: bool) -> tuple[float, float]:
    """Return mean and spread of a target; for a class, the logit of its share and 1."""
    if is_class:
        # One of each class is added, so that a class that never occurs has a logit too.
        share = (y.sum() + 1.0) / (len(y) + 2.0)
        return float(np.log(share / (1.0 - share))), 1.0
    if not len(y):
        return 0.0, 1.0
    return float(y.mean()), float(y.std()) or 1.0


def _read_trees(model: Any, iterations: int, scratch: Path | None) -> Ensemble:
    """Take the trees out of a CatBoost model, by way of its JSON form."""
    with tempfile.TemporaryDirectory(prefix="molscore-", dir=scratch) as folder:
        path = Path(folder) / "trees.json"
        model.save_model(str(path), format="json")
        text = json.loads(path.read_text(encoding="utf-8"))
    scale, (bias,) = text["scale_and_bias"]
    ensemble = Ensemble.constant(iterations, float(bias))
    for t, tree in enumerate(text["oblivious_trees"]):
        splits = tree["splits"] or []
        for level, split in enumerate(splits):
            ensemble.feature[level, t] = split["float_feature_index"]
            ensemble.threshold[level, t] = split["border"]
        ensemble.values[: 2 ** len(splits), t] = np.multiply(tree["leaf_values"], scale)
    return ensemble

"""What a bundle says of molecules, for students to learn.

An expert never saw the labels of its fold, so neither has a student that learns from it alone.
Of a blend this holds for the networks and trees, but not for the weights that ship, which are
fitted on all folds: there, an expert speaks with the weight its cross-validation used, if there
is one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.onnx_session import open_session
from molscore.bundle.reader import Bundle
from molscore.bundle.trees import WEIGHT
from molscore.data.foreign import clip
from molscore.errors import BundleError, ConfigError, InputError
from molscore.train.assess import average, report
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData

BATCH: Final = 16
"""Molecules a run; see `molscore.predict.core`."""

TEACHER: Final = "teacher"
"""Key of a student's manifest, under `training`: what it learned from."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Teacher:
    """A bundle to learn from; made by `Teacher.of`.

    Attributes:
        bundle: the model.
        train: how its experts were trained: folds, repeats, split and seed.
    """

    bundle: Bundle
    train: TrainConfig

    @classmethod
    def of(cls, bundle: Bundle) -> "Teacher":
        """Take a bundle as a teacher.

        Raises:
            ConfigError: when it is a student itself.
            BundleError: when it does not say how it was trained.
        """
        training, n = bundle.manifest.training, bundle.manifest.n_experts
        if TEACHER in training:
            raise ConfigError(
                f"{bundle.where} is a student itself: distil the model it learned from "
                f"({_text(training[TEACHER], 'name')})"
            )
        try:
            train = TrainConfig.from_dict(training.get("config", {}), where="training.config")
        except ConfigError as error:
            raise BundleError(f"{bundle.where}: {error}") from None
        if train.n_experts != n or not isinstance(training.get("data_sha256"), str):
            raise BundleError(
                f"{bundle.where} does not say which of its {n} experts is blind to which rows, so "
                "no student of it could be judged; train it again"
            )
        return cls(bundle, train)

    def refuse_other_data(self, data: TrainingData, name: str, table_sha256: str | None) -> None:
        """Raise when a table, with its folds, is not what the teacher was trained on.

        Args:
            data: what was made of the table, with descriptors only if the teacher takes any.
            name: of the table.
            table_sha256: of its file, if it is one.
        """
        training = self.bundle.manifest.training
        if data.digest() == training["data_sha256"]:
            return
        was, rows = _text(training, "table"), _text(training.get("counts"), "rows_used")
        if table_sha256 is not None and table_sha256 == training.get("table_sha256"):
            why = (
                "the file is the same, but its rows, values or folds come out differently here: "
                "give the --folds-file, --exclude and table options of the training run, and use "
                f"RDKit {self.bundle.manifest.rdkit_version}"
            )
        else:
            why = f"give the table it was trained on, {was} ({rows} rows used)"
        raise InputError(
            f"{name}: {len(data)} usable rows, which are not the data {self.bundle.where} was "
            f"trained on; a student could not be judged without its folds: {why}"
        )

    def warnings(self) -> tuple[str, ...]:
        """Return why the figures of its students may flatter them.

        Raises:
            BundleError: when its number of rows is none.
        """
        start = self.bundle.manifest.training.get("start")
        n = start.get("rows_it_was_trained_on", 0) if isinstance(start, dict) else 0
        if type(n) is not int or n < 0:  # a bool is an int, too
            raise BundleError(
                f"{self.bundle.where}: training.start.rows_it_was_trained_on must be a whole "
                f"number from 0, got {clip(n)!r}"
            )
        if not n:
            return ()
        return (
            f"{clip(self.bundle.manifest.name)} started from {_text(start, 'name')}, which was "
            f"trained on the structures of {n} of these rows: the figures flatter its students too",
        )

    def about(self) -> dict[str, Any]:
        """Return what a student's manifest says of its teacher."""
        manifest = self.bundle.manifest
        return {
            "name": clip(manifest.name),
            "sha256": self.bundle.sha256,
            "experts": manifest.n_experts,
            "data_sha256": manifest.training["data_sha256"],
            "split": self.train.split,
            "seed": self.train.seed,
        }

    def teach(self, data: TrainingData) -> Floats:
        """Return what each student is to learn, float64 [n_students, n, n_targets].

        Student k learns from the experts that are blind to fold k, the last one from all, and
        without folds it is the only one. What several experts say is averaged as a prediction
        is. NaN where that is not a finite number.

        Args:
            data: n molecules, with descriptors if the teacher takes any.
        """
        n, folds = self.bundle.manifest.n_experts, self.train.folds
        ships = np.stack([self._say(data, i, {}) for i in range(n)])
        honest = ships
        if WEIGHT in self.bundle.manifest.tensors and folds > 1:
            # An empty fold, which a folds file may have, has no weight: there is nobody to judge.
            judged = set(data.folds.tolist())
            honest = np.stack(
                [
                    self._say(data, i, {WEIGHT: self._weight(i % folds)})
                    if i % folds in judged
                    else ships[i]
                    for i in range(n)
                ]
            )
        groups = [honest[k::folds] for k in range(folds)] if folds > 1 else []
        groups.append(ships)
        targets = self.bundle.manifest.targets
        said = np.stack([average(targets, report(data, group)) for group in groups])
        return np.where(np.isfinite(said), said, np.nan)

    def _say(self, data: TrainingData, index: int, changed: dict[str, NDArray[Any]]) -> Floats:
        """Return the raw outputs of one expert, float64 [n, n_targets]."""
        bundle = self.bundle
        weights = {**bundle.expert_weights(index), **changed}
        session = open_session(bundle.onnx, weights, bundle.onnx_weights)
        x = None
        if bundle.manifest.descriptor_names and data.descriptors is not None:
            x = bundle.scaler(index).transform(data.descriptors)
        parts = []
        for rows in _batches(len(data)):
            inputs: dict[str, NDArray[Any]] = data.graphs.batch(rows)._asdict()
            if x is not None:
                inputs["descriptors"] = x[rows]
            parts.append(session.run(inputs))
        return np.concatenate(parts).astype(np.float64)

    def _weight(self, fold: int) -> NDArray[np.float32]:
        """Return the weights of a blend that were fitted without a fold, [n_targets]."""
        manifest = self.bundle.manifest
        try:
            weights = [
                next(
                    item["graph"]
                    for item in manifest.metrics[target.name]["weight"]["folds"]
                    if item["fold"] == fold
                )
                for target in manifest.targets
            ]
            return np.array(weights, dtype=np.float32)
        except (KeyError, TypeError, ValueError, StopIteration):
            raise BundleError(
                f"{self.bundle.where} does not say which weight of the blend belongs to fold "
                f"{fold}; train it again"
            ) from None


def _batches(n: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, n, BATCH):
        yield np.arange(start, min(n, start + BATCH))


def _text(data: Any, key: str) -> str:
    """Return an entry of free-form JSON, fit for a message."""
    return clip(data.get(key, "?") if isinstance(data, dict) else "?")

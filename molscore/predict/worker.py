"""What a worker process does for a prediction: read the models, answer chunks of SMILES."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from molscore.bundle.reader import load_bundle
from molscore.errors import BundleError
from molscore.predict.core import ChunkResult
from molscore.predict.models import Models
from molscore.predict.task import Task
from molscore.processes.pool import Work
from molscore.processes.worker import Message
from molscore.trust.options import TrustOptions

_FIELDS: Final = tuple(field.name for field in fields(ChunkResult))


class Setup(NamedTuple):
    """Which models, as [path, SHA-256] each, how to run them, and what to say beside."""

    models: list[list[str]]
    batch_size: int
    trust: dict[str, Any]


def work(models: Models, batch_size: int) -> Work[Task, ChunkResult]:
    """Return how chunks are predicted elsewhere.

    Args:
        models: workers read their files again and check that they are the same.
        batch_size: most molecules per run.
    """
    files = [[str(bundle.path), bundle.sha256] for bundle in models.bundles]
    return Work(
        serve=serve,
        setup=Setup(files, batch_size, models.trust.to_dict())._asdict(),
        to_message=Task._asdict,
        from_message=partial(_from_message, n_targets=len(models.targets)),
        describe=_describe,
    )


def serve(setup: Message) -> Callable[[Message], Message]:
    """Read the models of a setup; return what predicts a chunk."""
    files, batch_size, trust = Setup(**setup)
    bundles = []
    for path, sha256 in files:
        bundle = load_bundle(path)
        if bundle.sha256 != sha256:
            raise BundleError(f"{path} was replaced while it was in use")
        bundles.append(bundle)
    models = Models.open(bundles, trust=TrustOptions(**trust))

    def predict(message: Message) -> Message:
        result = models.predict(Task(**message), batch_size)
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name in _FIELDS
            for value in [getattr(result, name)]
        }

    return predict


def _from_message(answer: dict[str, Any], n_targets: int) -> ChunkResult:
    arrays = {
        name: np.array(answer[name], dtype=np.float64).reshape(-1, n_targets)
        for name in ("values", "sd", "lower", "upper")
    }
    return ChunkResult(**{**answer, **arrays})


def _describe(task: Task) -> str:
    return f"predicting rows {task.first_row + 1} to {task.first_row + len(task.smiles)}"

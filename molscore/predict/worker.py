"""What a worker process does for a prediction: read the models, answer chunks of SMILES."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from molscore.bundle.reader import load_bundle
from molscore.errors import BundleError
from molscore.predict.core import ChunkResult
from molscore.predict.models import Models
from molscore.predict.task import Task
from molscore.processes.pool import Work
from molscore.processes.worker import Message


class Setup(NamedTuple):
    """Which models, as [path, SHA-256] each, and how to run them."""

    models: list[list[str]]
    batch_size: int


def work(models: Models, batch_size: int) -> Work[Task, ChunkResult]:
    """Return how chunks are predicted elsewhere.

    Args:
        models: workers read their files again and check that they are the same.
        batch_size: most molecules per run.
    """
    files = [[str(bundle.path), bundle.sha256] for bundle in models.bundles]
    return Work(
        serve=serve,
        setup=Setup(files, batch_size)._asdict(),
        to_message=Task._asdict,
        from_message=_from_message,
        describe=_describe,
    )


def serve(setup: Message) -> Callable[[Message], Message]:
    """Read the models of a setup; return what predicts a chunk."""
    files, batch_size = Setup(**setup)
    bundles = []
    for path, sha256 in files:
        bundle = load_bundle(path)
        if bundle.sha256 != sha256:
            raise BundleError(f"{path} was replaced while it was in use")
        bundles.append(bundle)
    models = Models.open(bundles)

    def predict(message: Message) -> Message:
        result = models.predict(Task(**message), batch_size)
        return {
            "values": result.values.tolist(),
            "sd": result.sd.tolist(),
            "status": result.status,
            "error": result.error,
        }

    return predict


def _from_message(answer: dict[str, Any]) -> ChunkResult:
    return ChunkResult(
        values=np.array(answer["values"], dtype=np.float64),
        sd=np.array(answer["sd"], dtype=np.float64),
        status=answer["status"],
        error=answer["error"],
    )


def _describe(task: Task) -> str:
    return f"predicting rows {task.first_row + 1} to {task.first_row + len(task.smiles)}"

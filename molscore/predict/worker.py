"""A worker process: reads chunks of SMILES from its standard input, answers on its output.

Started by `molscore.predict.pool` as a fresh interpreter, so it inherits no threads, locks or
sessions, needs neither /dev/shm nor semaphores, and does not run the caller's main module
again. Messages are pickles between a parent and its own child; no file is ever unpickled.

It lives as long as its parent: the end of its input, also by kill -9 of the parent, ends it.
"""

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO, NamedTuple


class Setup(NamedTuple):
    """The first message: which model, and how to run it."""

    path: str
    sha256: str
    batch_size: int


class Task(NamedTuple):
    """One chunk."""

    first_row: int
    smiles: list[str]


class Problem(NamedTuple):
    """The answer when the worker itself failed: kind and words of the exception."""

    kind: str
    text: str


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message; EOFError when the other side is gone."""
    return pickle.load(stream)  # noqa: S301 (from our own child or parent only)


def main() -> None:
    """Serve chunks until the input ends."""
    # Ctrl-C reaches the whole process group; the parent decides, and ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox, outbox = _claim_streams()
    try:
        setup = receive(inbox)
        predict = _prepare(setup)
        while True:
            send(outbox, predict(receive(inbox)))
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001 (the parent reports it)
        send(outbox, Problem(type(error).__name__, str(error)))
    # Nothing is left to clean up, and unloading the libraries takes a tenth of a second.
    os._exit(0)


def _claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for messages; what is printed goes to stderr."""
    inbox = os.fdopen(os.dup(0), "rb")
    outbox = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return inbox, outbox


def _prepare(setup: Setup) -> Any:
    # Imported here, so that a failing import is an answer too.
    from molscore.bundle.reader import load_bundle  # noqa: PLC0415
    from molscore.errors import BundleError  # noqa: PLC0415
    from molscore.predict.core import predict_chunk  # noqa: PLC0415
    from molscore.predict.engine import OnnxEngine  # noqa: PLC0415

    bundle = load_bundle(setup.path)
    if bundle.sha256 != setup.sha256:
        raise BundleError(f"{setup.path} was replaced while it was in use")
    engine = OnnxEngine(bundle)

    def predict(task: Task) -> Any:
        return predict_chunk(
            task.smiles, task.first_row, bundle, engine, batch_size=setup.batch_size
        )

    return predict

"""A worker process: reads chunks of SMILES from its standard input, answers on its output.

Started by `molscore.predict.pool` as a fresh interpreter, so it inherits no threads, locks or
sessions, needs neither /dev/shm nor semaphores, and does not run the caller's main module
again. Messages are JSON behind their length.

It lives as long as its parent: the end of its input, also by kill -9 of the parent, ends it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import IO, Any, NamedTuple

Message = dict[str, Any]

_LENGTH_BYTES = 8


class Setup(NamedTuple):
    """The first message: which models, as [path, SHA-256] each, and how to run them."""

    models: list[list[str]]
    batch_size: int


class Task(NamedTuple):
    """One chunk."""

    first_row: int
    smiles: list[str]


def send(stream: IO[bytes], message: Message) -> None:
    """Write one message. Numbers come through exactly, NaN and lone surrogates too."""
    data = json.dumps(message).encode("ascii")
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Message:
    """Read one message.

    Raises:
        EOFError: when the other side is gone.
    """
    length = int.from_bytes(_read(stream, _LENGTH_BYTES), "little")
    message: Message = json.loads(_read(stream, length))
    return message


def _read(stream: IO[bytes], n: int) -> bytes:
    data = stream.read(n)
    if len(data) < n:
        raise EOFError
    return data


def main() -> None:
    """Serve chunks until the input ends."""
    # Where it could not be blocked from the start (Windows), Ctrl-C is ignored from here on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox, outbox = _claim_streams()
    try:
        predict = _prepare(Setup(**receive(inbox)))
        while True:
            send(outbox, predict(Task(**receive(inbox))))
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001 (the parent reports it)
        send(outbox, {"problem": type(error).__name__, "text": str(error)})
    # Nothing is left to clean up, and unloading the libraries takes a tenth of a second.
    os._exit(0)


def _claim_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Take standard input and output for messages; what is printed goes to stderr."""
    inbox = os.fdopen(os.dup(0), "rb")
    outbox = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return inbox, outbox


def _prepare(setup: Setup) -> Callable[[Task], Message]:
    # Imported here, so that a failing import is an answer too.
    from molscore.bundle.reader import load_bundle  # noqa: PLC0415
    from molscore.errors import BundleError  # noqa: PLC0415
    from molscore.predict.models import Models  # noqa: PLC0415

    bundles = []
    for path, sha256 in setup.models:
        bundle = load_bundle(path)
        if bundle.sha256 != sha256:
            raise BundleError(f"{path} was replaced while it was in use")
        bundles.append(bundle)
    models = Models.open(bundles)

    def predict(task: Task) -> Message:
        result = models.predict(task, setup.batch_size)
        return {
            "values": result.values.tolist(),
            "sd": result.sd.tolist(),
            "status": result.status,
            "error": result.error,
        }

    return predict

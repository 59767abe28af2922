"""A worker process: reads tasks from its standard input, answers on its output.

Started by `molscore.processes.pool` as a fresh interpreter, so it inherits no threads, locks or
sessions, needs neither /dev/shm nor semaphores, and does not run the caller's main module
again. Messages are JSON behind their length.

It lives as long as its parent: the end of its input, also by kill -9 of the parent, ends it.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import IO, Any

Message = dict[str, Any]
Serve = Callable[[Message], Callable[[Message], Message]]
"""Takes the setup and returns what answers tasks."""

_LENGTH_BYTES = 8


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
    """Serve tasks until the input ends."""
    # Where it could not be blocked from the start (Windows), Ctrl-C is ignored from here on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox, outbox = _claim_streams()
    try:
        first = receive(inbox)
        # Imported here, so that a failing import is an answer too.
        serve: Serve = getattr(importlib.import_module(first["module"]), first["function"])
        answer = serve(first["setup"])
        while True:
            send(outbox, answer(receive(inbox)))
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

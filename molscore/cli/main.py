"""The console script: what surrounds every command.

`run` owns the process: standard streams, signals, and the one place where an exception becomes
one line on stderr and an exit code. It imports the commands only once that is in place, so an
interrupt during start-up is handled too.

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | a fault of molscore or of the machine (disk full, out of memory) |
| 2 | an option, or a combination of options, that cannot be used |
| 3 | input data that cannot be used, or any failed row under `--strict` |
| 4 | a model bundle, or an export, that cannot be used |
| 130 | interrupted (Ctrl-C) |
| 141 | the reader of stdout went away (`| head`) |

SIGTERM and SIGHUP clean up like Ctrl-C and then end the process by that same signal.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from molscore.errors import EXIT_CLOSED_PIPE, EXIT_INTERRUPTED, MolscoreError
from molscore.interrupts import never_lose_interrupts


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; raised so that partial files are removed on the way out."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def run() -> NoReturn:
    """Run `molscore` on `sys.argv` and leave the process with its exit code."""
    _occupy_closed_streams()
    _catch_signals()
    try:
        code = main(sys.argv[1:])
    except Terminated as stop:
        _silence_stdout()
        signal.signal(stop.signum, signal.SIG_DFL)
        os.kill(os.getpid(), stop.signum)
        code = 128 + stop.signum
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    try:
        code = _invoke(arguments)
        if sys.stdout is not None:
            # Here, not at interpreter shutdown, where a closed pipe could only be complained about.
            sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_CLOSED_PIPE
    except KeyboardInterrupt:
        _silence_stdout()
        return _report("interrupted", EXIT_INTERRUPTED)
    return code


def _invoke(arguments: Sequence[str]) -> int:
    try:
        from molscore.cli.app import dispatch  # noqa: PLC0415 (start-up stays interruptible)

        return dispatch(arguments)
    except MolscoreError as error:
        return _report(str(error), error.exit_code, error)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _report(f"{error.strerror or error}{where}", 1, error)
    except MemoryError as error:
        return _report("out of memory", 1, error)
    except Exception as error:  # noqa: BLE001 (the last line of defence: one line, no traceback)
        kind = type(error).__name__
        return _report(f"internal fault: {kind}: {error} (--debug shows where)", 1, error)


def _report(message: str, code: int, error: BaseException | None = None) -> int:
    """Write `message` as one line to stderr, with the traceback under `--debug`."""
    from molscore.cli import logs  # noqa: PLC0415 (as above)

    if error is not None and logs.state.debug:
        traceback.print_exception(error)
    logs.write_line(f"error: {' '.join(message.splitlines())}" if error else message)
    return code


def _occupy_closed_streams() -> None:
    """Keep descriptors 0 to 2 taken, so that no output file is ever opened as stdout or stderr.

    A closed stdout stays `None` (a writer must be able to refuse); a closed stderr becomes
    the null device, because `print(file=None)` would put log lines into the data.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free descriptor is taken: 0, 1 and 2 are filled in this order.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        # Data and messages are UTF-8 whatever the locale: the same bytes in every shell.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _catch_signals() -> None:
    never_lose_interrupts()
    for name in ("SIGTERM", "SIGHUP"):
        signum = getattr(signal, name, None)  # SIGHUP does not exist on Windows
        # An ignored signal (nohup) stays ignored.
        if signum is not None and signal.getsignal(signum) == signal.SIG_DFL:
            signal.signal(signum, _raise_terminated)


def _raise_terminated(signum: int, frame: FrameType | None) -> None:
    raise Terminated(signum)


def _silence_stdout() -> None:
    """Point stdout at the null device, so that nothing is flushed into a dead pipe at exit."""
    if sys.stdout is not None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)

"""Messages to stderr: plain lines, byte for byte, never through Rich.

Rich would read `[nH]` as markup, `:smile:` as an emoji and break lines at the terminal's width.
A progress bar, when there is one, stays below the lines: it is wiped, the line is written, and
the bar draws itself again.
"""

import contextlib
import logging
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WIPE = "\r\x1b[2K"
_PACKAGE = str(Path(__file__).parent.parent)


@dataclass
class LogState:
    """What the options of this process asked for.

    Attributes:
        debug: show tracebacks, and warnings of other packages.
        quiet: no progress, no information, only warnings and errors.
        bar: a progress bar occupies the last line of the terminal.
    """

    debug: bool = False
    quiet: bool = False
    bar: bool = False


state = LogState()


def configure(*, verbose: bool, quiet: bool, debug: bool) -> None:
    """Route log records and Python warnings of this process to stderr.

    Args:
        verbose: also show what was guessed and chosen along the way (`INFO` becomes `DEBUG`).
        quiet: show warnings and errors only.
        debug: as `LogState.debug`. Stays on once it is on.
    """
    state.debug = state.debug or debug
    state.quiet = quiet
    logger = logging.getLogger("molscore")
    logger.handlers = [LineHandler()]
    logger.propagate = False
    level = logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO
    logger.setLevel(level)
    warnings.showwarning = _log_warning


def write_line(text: str) -> None:
    """Write `text` as exactly one line to stderr; control characters are shown as escapes."""
    wipe = _WIPE if state.bar else ""
    sys.stderr.write(f"{wipe}{visible(text)}\n")
    sys.stderr.flush()


class LineHandler(logging.Handler):
    """Writes a record as one line; warnings and errors carry their level as a prefix."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`. A closed pipe is left to the caller to handle."""
        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        write_line(prefix + record.getMessage())
        if record.exc_info and state.debug:
            traceback.print_exception(record.exc_info[1])


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any
) -> None:
    """Show warnings that molscore raised; those of other packages under `--debug` only."""
    if filename.startswith(_PACKAGE):
        write_line(f"warning: {message}")
    elif state.debug:
        with contextlib.suppress(ValueError):  # stderr may be gone at interpreter shutdown
            write_line(f"warning: {filename}: {category.__name__}: {message}")


def visible(text: str) -> str:
    r"""Return `text` with control characters escaped (`\n`, `\x1b`), everything else as it is."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or ord(c) > 0x9F else repr(c)[1:-1] for c in text)

"""The files beside an output that is gone on with: their names, and how they are opened.

Whoever may write in the folder can foresee the names. What lies there is therefore opened only
if it is a plain file of one name: through a link, somebody else's file would be written.
"""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from molscore.errors import ConfigError

_LONGEST_NAME: Final = 200
_CAREFULLY: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a named pipe would wait for its other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def partial_path(path: Path) -> Path:
    """Return where the output that will be `path` is written."""
    name = path.name
    raw = os.fsencode(name)
    if len(raw) > _LONGEST_NAME:  # as long as the file system takes
        name = f"{name[:40]}.{hashlib.sha256(raw).hexdigest()[:8]}"
    return path.with_name(f"{name}.partial")


def state_path(partial: Path) -> Path:
    """Return where it is said how far `partial` is whole."""
    return partial.with_name(f"{partial.name}.json")


def spare(path: Path) -> Path:
    """Return the name under which a new state is written."""
    return path.with_name(f"{path.name}.new")


def files_beside(output: str | Path) -> list[Path]:
    """Return every file that may be written on the way to an output; none for stdout."""
    if str(output) == "-":
        return []
    with suppress(OSError, RuntimeError, ValueError):  # what is wrong is said where it is opened
        partial = partial_path(Path(output).resolve())
        return [partial, state_path(partial), spare(state_path(partial))]
    return []


def shown(path: Path | None) -> str:
    """Return a path as short as it can be read: from the working directory on."""
    try:
        return str(path and path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


def open_plain(path: Path, *, write: bool) -> IO[bytes]:
    """Open a file that is there, if it is a plain one.

    Raises:
        FileNotFoundError: if it is not there.
        ConfigError: if it is a link, or no file, or cannot be opened.
    """
    advice = "move it away, or give another --output"
    try:
        number = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | _CAREFULLY)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise ConfigError(f"{shown(path)} is a link; {advice}") from None
        if not os.path.lexists(path):
            raise
        raise ConfigError(
            f"{shown(path)} is in the way and cannot be opened ({error.strerror}); {advice}"
        ) from None
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(number)
        what = "has a second name" if stat.S_ISREG(found.st_mode) else "is no file"
        raise ConfigError(f"{shown(path)} {what}; {advice}")
    return os.fdopen(number, "r+b" if write else "rb")


def is_still(stream: IO[bytes], path: Path) -> bool:
    """Return whether an open file still has the name it was opened by."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.lstat())
    except FileNotFoundError:
        return False

"""Files of a run that are whole or not there, also after a kill, though not after a power cut."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from molscore.errors import MolscoreError


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Replace `path` by what `write(temporary_path)` leaves, or leave it as it was.

    Its mode is that of any new file, whatever `write` (safetensors: 0600) makes of it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        temporary.touch()
        mode = stat.S_IMODE(temporary.stat().st_mode)  # the umask, without setting it
        try:
            write(temporary)
        except SafetensorError as error:  # a full disk, in the words of another library
            raise MolscoreError(f"cannot write {path}: {error}; --resume goes on") from None
        if stat.S_IMODE(temporary.stat().st_mode) != mode:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

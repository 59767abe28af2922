"""Where a run and its model go, and whether they can."""

import os
from pathlib import Path

from molscore.errors import ConfigError, MolscoreError
from molscore.train.folder import RunFolder


def check_places(output: Path, folder: RunFolder, *, force: bool, resume: bool) -> None:
    """Refuse a place that cannot take the run or its model, before any work is done.

    Args:
        output: the `.molscore` file to write.
        folder: the run folder.
        force: whether an existing bundle and an existing run may be replaced.
        resume: whether the run in the folder goes on.

    Raises:
        ConfigError: when a file or run is in the way, or there is no run to resume.
        MolscoreError: when a folder takes no files.
    """
    if output.is_dir():
        raise ConfigError(f"{output} is a folder; give --output the name of a file")
    if output.exists() and not force:
        raise ConfigError(f"{output} exists: choose another --output or use --force")
    if not output.parent.is_dir():
        raise ConfigError(f"{output}: the folder {output.parent} does not exist")
    if folder.path.exists() and not folder.path.is_dir():
        raise ConfigError(f"--run-dir {folder.path} is not a folder")
    if resume and not folder.exists():
        raise ConfigError(f"--resume: there is no run in {folder.path} to go on with")
    if folder.exists() and not (force or resume):
        raise ConfigError(
            f"{folder.path} holds a run already: use --resume to go on with it, --force to "
            "replace it, or another --run-dir"
        )
    # A file may be writable in a folder that is not: one mounted into a container.
    if not (output.exists() and os.access(output, os.W_OK)):
        _check_writable(output, output.parent)
    _check_writable(folder.path, folder.path)


def _check_writable(path: Path, folder: Path) -> None:
    """Ask the nearest folder that exists: those below it are yet to be made."""
    folder = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise MolscoreError(f"cannot write {path}: the folder {folder} is read-only")

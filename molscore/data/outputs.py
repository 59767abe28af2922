"""Where bytes go: stdout, or a file that appears whole or not at all."""

import errno
import io
import os
import secrets
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, cast

from molscore.errors import ConfigError, MolscoreError

_NO_NEW_FILES: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_CLOSE_FIRST: Final = sys.platform == "win32"
"""An open file cannot be renamed or removed there."""


def _destination(path: Path) -> Path:
    """Follow links to a file; a device (`/dev/stdout`) is known by its own name only."""
    try:
        return path if path.exists() and not path.is_file() else path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name too long
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot write {str(path)[:200]}: {reason}") from None


def refuse_inputs(output: str | Path | None, *, also: Sequence[Path] = (), **inputs: Any) -> None:
    """Refuse an output that is one of the files the command reads: it would be lost.

    Args:
        output: as for `Output`.
        also: files that are written on the way to it.
        inputs: what each is -> its path, or a list of paths; what is no path (a data frame,
            None, "-") is ignored.

    Raises:
        ConfigError: naming the one it is.
    """
    if output is None:
        return
    for what, given in inputs.items():
        name = what.replace("_", " ")
        for path in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(path, str | Path) or str(path) == "-":
                continue
            if _is_same(output, path):
                raise ConfigError(f"--output {output} is the {name} itself; give another name")
            if any(_is_same(other, path) for other in also):
                raise ConfigError(
                    f"--output {output} is written by way of {path}, which is the {name}; "
                    "give another name"
                )


def _is_same(output: str | Path, path: str | Path) -> bool:
    with suppress(OSError, ValueError):
        return Path(output).is_file() and Path(output).samefile(path)
    return False


class Output:
    """A place for bytes. Write, then either `commit` or `discard`.

    A path is written beside its place and renamed by `commit`. Where that cannot be (a single
    file mounted into a container, a device, a named pipe) the bytes go straight there.

    Args:
        path: a file, or "-" for stdout.
        force: whether an existing file may be replaced.

    Raises:
        ConfigError: if the file exists and `force` is not set, or its folder does not exist.
        MolscoreError: if it cannot be created.
    """

    def __init__(self, path: str | Path, *, force: bool) -> None:
        self.name: Final = "stdout" if str(path) == "-" else str(path)
        self.path: Final = None if str(path) == "-" else _destination(Path(path))
        self._force = force
        self._partial: Path | None = None
        self._position = 0
        self._in_place = False
        self._touched = False
        self._stream = self._open_stdout() if self.path is None else self._open_path(self.path)

    def _open_stdout(self) -> IO[bytes]:
        if sys.stdout is None:
            raise MolscoreError("stdout is closed: nowhere to write to")
        sys.stdout.flush()
        try:
            number = sys.stdout.fileno()
        except (OSError, ValueError):
            return sys.stdout.buffer  # a replacement without a file behind it
        # Without a buffer between, nothing is left to fail again when the program ends.
        return cast(IO[bytes], io.FileIO(number, "wb", closefd=False))

    def _open_path(self, path: Path) -> IO[bytes]:
        if path.is_dir():
            raise ConfigError(f"{self.name} is a folder; give the name of a file")
        if not path.parent.is_dir():
            raise ConfigError(f"the folder of {self.name} does not exist; make it first")
        special = path.exists() and not path.is_file()
        if path.exists() and not special:
            self._check_free(path)
        try:
            if special:
                return path.open("wb")
            try:
                partial, stream = self._open_partial(path)
            except OSError as error:
                # A folder that takes no file around a file that does: a mounted one.
                if error.errno not in _NO_NEW_FILES or not os.access(path, os.W_OK):
                    raise
                stream = path.open("r+b")
                self._in_place = True
                return stream
        except OSError as error:
            raise MolscoreError(f"cannot write {self.name}: {error.strerror or error}") from None
        self._partial = partial
        return stream

    def _open_partial(self, path: Path) -> tuple[Path, IO[bytes]]:
        """Make the file that will be renamed to `path`."""
        # Not the process id: in containers it is the same every time.
        # Part of the name, which may be as long as the file system takes.
        partial = path.with_name(f"{path.name[:50]}.{secrets.token_hex(4)}.partial")
        return partial, partial.open("xb")

    def _check_free(self, path: Path) -> None:
        if path.exists() and not self._force:
            raise ConfigError(f"{self.name} exists already; --force replaces it")

    @property
    def closed(self) -> bool:
        """For pyarrow, which asks."""
        return self._stream.closed

    @property
    def continued(self) -> bool:
        """Whether bytes of another run stand before ours: never, in a new file."""
        return False

    @property
    def whole(self) -> bool:
        """Whether more bytes may follow in another run: always, of plain ones."""
        return True

    def writable(self) -> bool:
        """Whether bytes can be written: always."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written so far (stdout has no position of its own)."""
        return self._position

    def write(self, data: bytes) -> int:
        """Write bytes.

        Raises:
            BrokenPipeError: if the reader of a pipe has gone.
            MolscoreError: if they cannot be written (a full disk).
        """
        block = bytes(data)
        rest = memoryview(block)
        self._touched = True
        with self._guarding():
            while rest:
                written = cast(int | None, self._stream.write(rest))
                if written is None:  # a stdout that does not block, and is full
                    select.select([], [self._stream], [])
                rest = rest[written or 0 :]
        self._position += len(block)
        return len(block)

    def flush(self) -> None:
        """Hand all bytes to the system. Raises as `write`."""
        with self._guarding():
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: `commit` and `discard` close."""

    @contextmanager
    def _guarding(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise MolscoreError(
                f"cannot write {self.name}: {error.strerror or error}{self._left()}"
            ) from None

    def _left(self) -> str:
        """Say what is left of the bytes written before something failed."""
        return "" if self.path is None else "; nothing was kept"

    def commit(self) -> None:
        """Finish, and put the file in its place.

        Raises:
            BrokenPipeError: if the reader of a pipe has gone.
            ConfigError: if the file has come into being since, without `force`.
            MolscoreError: if the last bytes cannot be written, or the file not be renamed.
        """
        try:
            self.flush()
            if self.path is None:
                return
            with self._guarding():
                if self._partial is None:
                    if self._in_place:
                        self._stream.truncate()
                    self._stream.close()
                    return
                os.fsync(self._stream.fileno())
                if _CLOSE_FIRST:
                    self._stream.close()
                self._check_free(self.path)
                self._rename(self._partial, self.path)
                self._partial = None
        except BaseException:
            self.discard()
            raise
        self._close_anyhow()  # behind the renaming: until then, a lock on the file holds

    def _rename(self, partial: Path, path: Path) -> None:
        try:
            partial.replace(path)
        except OSError:
            # A file that is itself a mount point cannot be replaced, only filled.
            if not path.is_file():
                raise
            shutil.copyfile(partial, path)
            partial.unlink()

    def discard(self) -> None:
        """Drop what was written, as far as it can be dropped."""
        if self.path is None:
            return
        with suppress(OSError, ValueError):
            if self._in_place and self._touched:
                self._stream.truncate(0)  # rather than half a table
        if _CLOSE_FIRST:
            self._close_anyhow()
        if self._partial is not None:
            with suppress(OSError):
                self._drop(self._partial)
            self._partial = None
        self._close_anyhow()

    def _drop(self, partial: Path) -> None:
        partial.unlink()

    def _close_anyhow(self) -> None:
        # Closing flushes what is left; on a full disk that fails again, which changes nothing.
        with suppress(OSError, ValueError):
            self._stream.close()

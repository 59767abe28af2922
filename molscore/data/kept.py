"""An output file that outlives an interruption, and is gone on with by another run."""

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from molscore.data.beside import is_still, open_plain, partial_path, shown, spare, state_path
from molscore.data.marks import (
    About,
    Mark,
    RowsHash,
    check_about,
    read_state,
    refuse_strange,
    thin_out,
    whole_marks,
    write_state,
)
from molscore.data.outputs import Output
from molscore.data.records import Record
from molscore.errors import ConfigError, InputError

if sys.platform != "win32":  # there, two runs at once are not noticed
    import fcntl

LOGGER: Final = logging.getLogger(__name__)

NOTE_SHARE: Final = 0.05
"""Largest share of the time that goes into notes of how far the file is whole. To rename a file
makes some file systems put bytes on the disk first, which can take longer than a chunk. What was
not noted when a run is killed is predicted again."""


class KeptOutput(Output):
    """An `Output` whose file stays when the run does not get to its end.

    Where bytes go straight to their place (a device, a mounted file) nothing can be kept, and
    it is an `Output` like any other.

    Args:
        path: a file.
        about: what decides its bytes; another run goes on only if that is the same.
        force: whether an existing file may be replaced, and a partial one dropped.
        resume: whether to go on with what is there. `continue_from` must then be called.

    Raises:
        ConfigError: if a partial file is in the way, is being written, or was made of something
            else; and as `Output`.
        MolscoreError: as `Output`.
    """

    def __init__(self, path: str | Path, about: About, *, force: bool, resume: bool) -> None:
        self._about = about
        self._resume = resume
        self._marks: list[Mark] = []
        self._noted: list[Mark] = []  # those that stand in the state file
        self._note_due = 0.0
        self._hash = hashlib.sha256()
        self._rows = RowsHash()
        self._ready = not resume
        self._continued = False
        super().__init__(path, force=force)
        if resume and self._partial is None:
            self.discard()
            raise ConfigError(
                f"--resume: {self.name} is written in place (a device, or a file in a folder "
                "that takes no other), so nothing of it can be gone on with"
            )

    @property
    def continued(self) -> bool:
        """Whether rows of another run stand before ours."""
        return self._continued

    @property
    def mark(self) -> Mark | None:
        """The last place where the file is whole; None at its very start."""
        return self._marks[-1] if self._marks else None

    def continue_from(self, records: Iterator[Record], first_row: int) -> None:
        """Read the rows that are done, and go on behind them.

        Args:
            records: all of the input; read up to the mark.
            first_row: the first row that was wanted.

        Raises:
            ConfigError: if a mark counts other rows than there are before it.
            InputError: if they are not the rows the output was made of.
        """
        for mark in self._marks:
            if sum(mark.counts.values()) != mark.next_row - first_row:
                raise ConfigError(
                    f"{shown(self._partial and state_path(self._partial))} counts other rows than "
                    f"those up to row {mark.next_row:,}; start again with --force instead of "
                    "--resume"
                )
        reached = 0
        for mark in self._marks:
            while reached < mark.next_row and (record := next(records, None)) is not None:
                reached = record.row + 1
                if record.row >= first_row:
                    self._rows.update([record])
            if reached < mark.next_row or self._rows.hexdigest() != mark.input_sha256:
                raise InputError(
                    f"--resume: {shown(self._partial)} was made of another table: its rows up to "
                    f"row {mark.next_row:,} are not those read now; give the table it was begun "
                    "with, or start again with --force instead of --resume"
                )
        with self._guarding():
            self._position = self._marks[-1].n_bytes if self._marks else 0
            self._stream.seek(self._position)
            self._stream.truncate()
        self._ready = True
        self._continued = bool(self._position)

    def write(self, data: bytes) -> int:
        """See `Output.write`."""
        self._hash.update(data)
        return super().write(data)

    def advance(self, records: Sequence[Record], counts: Mapping[str, int], *, whole: bool) -> None:
        """Take note that a chunk is written and flushed.

        Args:
            records: the input rows of it.
            counts: rows so far by status.
            whole: whether the file ends where it can be gone on with.

        Raises:
            MolscoreError: if the note cannot be written.
        """
        self._rows.update(records)
        if self._partial is None or not whole:
            return
        mark = Mark(
            self._marks[-1].number + 1 if self._marks else 1,
            records[-1].row + 1,
            self._position,
            self._hash.hexdigest(),
            self._rows.hexdigest(),
            dict(counts),
        )
        self._marks = thin_out([*self._marks, mark])
        if time.monotonic() >= self._note_due:
            with self._guarding():
                self._note(self._partial)

    def _note(self, partial: Path) -> None:
        began = time.monotonic()
        write_state(state_path(partial), self._about, self._marks)
        self._noted = self._marks
        ended = time.monotonic()
        self._note_due = ended + (ended - began) / NOTE_SHARE

    def discard(self) -> None:
        """Close the file; it is dropped only if there is nothing in it to go on with."""
        if self._partial is None or not self._noted:
            super().discard()
            return
        try:
            if self._marks[-1:] != self._noted[-1:]:
                with suppress(OSError):  # a full disk; then what was noted before holds
                    self._note(self._partial)
        finally:
            self._keep(self._partial)

    def _keep(self, partial: Path) -> None:
        """Close the file, leave it, and say so."""
        with suppress(OSError):  # stopped while it was written
            spare(state_path(partial)).unlink(missing_ok=True)
        self._close_anyhow()
        if self._ready:  # else why it cannot be gone on with has been said
            LOGGER.info(
                "%s keeps %s rows; the same command with --resume goes on",
                shown(partial),
                f"{sum(self._noted[-1].counts.values()):,}",
            )
        self._partial = None

    def _left(self) -> str:
        return "" if self._noted else super()._left()

    def _rename(self, partial: Path, path: Path) -> None:
        super()._rename(partial, path)
        _forget(partial)

    def _drop(self, partial: Path) -> None:
        super()._drop(partial)
        _forget(partial)

    def _open_partial(self, path: Path) -> tuple[Path, IO[bytes]]:
        partial = partial_path(path)
        try:
            stream = open_plain(partial, write=True)
            is_new = False
        except FileNotFoundError:
            refuse_strange(state_path(partial))
            self._begin(partial)
            stream = partial.open("xb")
            is_new = True
        try:
            _lock(stream, partial)
            if not is_new:
                self._take_over(partial, stream)
            elif self._resume:
                LOGGER.info("there is no %s: starting with the first row", shown(partial))
        except BaseException:
            stream.close()
            raise
        return partial, stream

    def _begin(self, partial: Path) -> None:
        state = state_path(partial)
        try:
            write_state(state, self._about, [])
        except OSError as error:
            if not os.path.lexists(state):  # a folder that takes no new file
                raise
            raise ConfigError(
                f"{shown(state)} is in the way and cannot be replaced ({error.strerror}); move it "
                "away, or give another --output"
            ) from None

    def _take_over(self, partial: Path, stream: IO[bytes]) -> None:
        """Find out what may become of a file that is there."""
        state = state_path(partial)
        refuse_strange(state, only_spare=self._resume)
        if self._resume:
            theirs, marks = read_state(state)
            check_about(shown(partial), theirs, self._about)
            self._marks, self._hash = whole_marks(stream, marks)
            self._noted = self._marks
            if marks and not self._marks:
                raise ConfigError(
                    f"--resume: {shown(partial)} is not as it was written, from its first rows on; "
                    "start again with --force instead of --resume"
                )
            return
        if not self._force and (not state.exists() or read_state(state)[1]):
            raise ConfigError(
                f"{shown(partial)} holds rows of a run that did not get to its end: --resume goes "
                "on with it, --force starts again"
            )
        self._begin(partial)
        stream.truncate(0)


def _lock(stream: IO[bytes], partial: Path) -> None:
    """Hold the file as long as it is open: two runs would write over each other."""
    if sys.platform != "win32":
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{shown(partial)} is being written by another run; wait for it, or give another "
                "--output"
            ) from None
        except OSError:  # a file system without locks
            pass
    if not is_still(stream, partial):
        raise ConfigError(
            f"{shown(partial)} was just finished or dropped by another run; look at what it "
            "left, then give the command again"
        )


def _forget(partial: Path) -> None:
    state = state_path(partial)
    for path in (state, spare(state)):
        with suppress(OSError):
            path.unlink()

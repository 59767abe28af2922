"""What is known of a half-written output: what it is made of, and how far it is whole.

`out.csv.partial` holds rows, `out.csv.partial.json` what is said here. A mark stands behind a
whole row at a chunk border; with it go the hash of all bytes up to there and the hash of the
input rows they were made of, so that both can be checked before another run goes on.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from molscore.data.beside import shown, spare
from molscore.data.records import Record
from molscore.errors import ConfigError

About = Mapping[str, Any]
"""What decides the bytes of an output, in words a user knows -> a JSON value."""

_SCHEMA: Final = 1
_BLOCK: Final = 1 << 20


class Mark(NamedTuple):
    """A place where an output can be gone on with.

    Attributes:
        number: of the mark, from 1.
        next_row: row of the input that comes next.
        n_bytes: length of the output up to here.
        output_sha256: of those bytes.
        input_sha256: of the input rows in them, see `RowsHash`.
        counts: rows up to here by status.
    """

    number: int
    next_row: int
    n_bytes: int
    output_sha256: str
    input_sha256: str
    counts: dict[str, int]


class RowsHash:
    """SHA-256 over the fields of rows, in whatever portions they come."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, records: Sequence[Record]) -> None:
        """Add rows."""
        # With their lengths, so that no other fields make the same text.
        text = "".join(
            f"{len(field)}:{field}" for r in records for field in (*r.fields, r.problem or "")
        )
        self._hash.update(text.encode("utf-8", "surrogatepass"))

    def hexdigest(self) -> str:
        """Return the hash of the rows so far."""
        return self._hash.hexdigest()


def thin_out(marks: Sequence[Mark]) -> list[Mark]:
    """Keep the last mark, and of the others the fewer the further back they are.

    After a power cut the file may be shorter than its last marks say; an earlier one then
    serves. There are some two for each doubling of the distance.
    """
    last = marks[-1].number
    return [
        mark
        for mark in marks
        if mark.number % (1 << max(0, (last - mark.number).bit_length() - 1)) == 0
    ]


def whole_marks(file: IO[bytes], marks: Sequence[Mark]) -> tuple[list[Mark], Any]:
    """Read a file and return the marks up to which it holds what was written, and its hash.

    Args:
        file: at its start.
        marks: by position.

    Returns:
        The marks that hold, and the SHA-256 state at the last of them.
    """
    state = good = hashlib.sha256()
    position, held = 0, 0
    for n, mark in enumerate(marks, 1):
        while position < mark.n_bytes:
            block = file.read(min(_BLOCK, mark.n_bytes - position))
            if not block:
                return list(marks[:held]), good
            state.update(block)
            position += len(block)
        if state.hexdigest() == mark.output_sha256:
            held, good = n, state.copy()
    return list(marks[:held]), good


def write_state(path: Path, about: About, marks: Sequence[Mark]) -> None:
    """Write what is known, whole or not at all."""
    new = spare(path)
    text = json.dumps(
        {"schema": _SCHEMA, "about": about, "marks": [mark._asdict() for mark in marks]}
    )
    new.write_text(text, encoding="ascii")
    new.replace(path)


def read_state(path: Path) -> tuple[About, list[Mark]]:
    """Read what is known.

    Raises:
        ConfigError: if it is missing, or not what `write_state` wrote.
    """
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        if data["schema"] != _SCHEMA:
            raise ConfigError(
                f"{shown(path)} is of schema {data['schema']}, which this molscore does not know; "
                "go on with the molscore that wrote it, or start again with --force"
            )
        return dict(data["about"]), [Mark(**mark) for mark in data["marks"]]
    except FileNotFoundError:
        raise ConfigError(
            f"{shown(path)} is missing, so nothing says what {path.stem} holds; move that file "
            "away, or start again with --force"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{shown(path)} cannot be read ({type(error).__name__}: {error}); "
            "start again with --force"
        ) from None


def check_about(partial: str, theirs: About, ours: About) -> None:
    """Compare what an output was begun with to what it would be gone on with.

    Raises:
        ConfigError: naming the first difference.
    """
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        if theirs.get(key) != ours.get(key):
            raise ConfigError(
                f"--resume: {partial} was begun with {key} {_show(theirs.get(key))}, now it is "
                f"{_show(ours.get(key))}; give what it was begun with, or start again with "
                "--force instead of --resume"
            )


def _show(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)

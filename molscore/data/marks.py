"""What is known of a half-written output: what it is made of, and how far it is whole.

`out.csv.partial` holds rows, `out.csv.partial.json` what is said here. A mark stands behind a
whole row at a chunk border; with it go the hash of all bytes up to there and the hash of the
input rows they were made of, so that both can be checked before another run goes on.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from molscore.data.beside import open_plain, shown, spare
from molscore.data.foreign import LONGEST, clip
from molscore.data.records import Record
from molscore.errors import ConfigError

About = Mapping[str, Any]
"""What decides the bytes of an output, in words a user knows -> a JSON value."""

_SCHEMA: Final = 1
_BEGINNING: Final = b'{"schema": '
_MOST_BYTES: Final = 1 << 26
_TOO_LARGE: Final = 1 << 63
_SHA256: Final = re.compile("[0-9a-f]{64}")
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
    new.unlink(missing_ok=True)
    with new.open("x", encoding="ascii") as file:  # never through a link
        file.write(text)
    new.replace(path)


def refuse_strange(path: Path, *, only_spare: bool = False) -> None:
    """Refuse what lies where a state would be written, unless `write_state` wrote it.

    Raises:
        ConfigError: naming the file.
    """
    for place in (spare(path),) if only_spare else (path, spare(path)):
        try:
            with open_plain(place, write=False) as file:
                found = file.read(len(_BEGINNING))
        except FileNotFoundError:
            continue
        if not _BEGINNING.startswith(found):  # cut by a power cut, or empty, it may be
            raise ConfigError(
                f"{shown(place)} is in the way: molscore would write there, and the file is not "
                "its own; move it away, or give another --output"
            )


def read_state(path: Path) -> tuple[About, list[Mark]]:
    """Read what is known.

    Raises:
        ConfigError: if it is missing, or not what `write_state` wrote.
    """
    try:
        with open_plain(path, write=False) as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError("longer than any state")
        return _parse_state(text, path)
    except FileNotFoundError:
        raise ConfigError(
            f"{shown(path)} is missing, so nothing says what {path.stem} holds; move that file "
            "away, or start again with --force"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{shown(path)} cannot be read ({type(error).__name__}: {clip(str(error))}); "
            "start again with --force"
        ) from None


def _parse_state(text: bytes, path: Path) -> tuple[About, list[Mark]]:
    data = json.loads(text.decode("ascii"))
    if not isinstance(data, dict) or "schema" not in data:
        raise ValueError("no schema is given")
    if data["schema"] != _SCHEMA:
        raise ConfigError(
            f"{shown(path)} is of schema {clip(_show(data['schema']))}, which this molscore "
            "does not know; go on with the molscore that wrote it, or start again with --force"
        )
    about, marks = data.get("about"), data.get("marks")
    if not isinstance(about, dict) or not isinstance(marks, list):
        raise ValueError("about and marks are expected")
    parsed = [_parse_mark(mark) for mark in marks]
    for one, next_one in pairwise(parsed):
        if one.number >= next_one.number or one.next_row >= next_one.next_row:
            raise ValueError("the marks are not in order")
        if one.n_bytes > next_one.n_bytes:
            raise ValueError("the marks are not in order")
    return about, parsed


def _parse_mark(mark: object) -> Mark:
    """Check a mark: anybody may have written it."""
    if not isinstance(mark, dict) or set(mark) != set(Mark._fields):
        raise ValueError(f"a mark has the fields {', '.join(Mark._fields)}")
    counts = mark["counts"]
    numbers = [mark["number"], mark["next_row"], mark["n_bytes"]]
    hashes = [mark["output_sha256"], mark["input_sha256"]]
    if not isinstance(counts, dict):
        raise ValueError("counts are an object")
    if not all(type(n) is int and 0 <= n < _TOO_LARGE for n in (*numbers, *counts.values())):
        raise ValueError("a number of a mark is none, negative or too large")
    if not all(isinstance(text, str) and _SHA256.fullmatch(text) for text in hashes):
        raise ValueError("a hash of a mark is no SHA-256")
    if not all(clip(status) == status for status in counts):
        raise ValueError("a status in counts is no short text")
    return Mark(**mark)


def check_about(partial: str, theirs: About, ours: About) -> None:
    """Compare what an output was begun with to what it would be gone on with.

    Raises:
        ConfigError: naming the first difference.
    """
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        if theirs.get(key) != ours.get(key):
            then, now = _parted(_show(theirs.get(key)), _show(ours.get(key)))
            raise ConfigError(
                f"--resume: {partial} was begun with {clip(key)} {clip(then)}, "
                f"now it is {clip(now)}; give what it was begun with, or start "
                "again with --force instead of --resume"
            )


def _parted(one: str, other: str) -> tuple[str, str]:
    """Cut texts that are too long for a message to where they differ: lists of hashes are."""
    if max(len(one), len(other)) <= LONGEST:
        return one, other
    pairs = enumerate(zip_longest(one, other))
    start = max(0, next((i for i, (a, b) in pairs if a != b), 0) - LONGEST // 4)
    return one[start:], other[start:]


def _show(value: Any) -> str:
    try:
        if isinstance(value, list):
            return ", ".join(map(str, value)) or "none"
        return "none" if value is None else str(value)
    except (RecursionError, ValueError):  # a number of too many digits
        return "what cannot be shown"

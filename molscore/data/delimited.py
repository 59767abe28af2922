"""Text lines to records: quoted tables, SMILES lists, tables of blanks.

The `csv` module reads quoted lines; lines without a quote are split directly, which is the
same and has no limit on the length of a field. A quote that never closes would swallow the
rest of a file, so a record may span so many lines only; past that, the line that opened the
quote is a record with a problem and reading goes on with the next line.
"""

import csv
import io
from collections import deque
from collections.abc import Iterator
from typing import Final

from molscore.data.records import RawRecord
from molscore.data.streams import READ_ERRORS, read_error
from molscore.errors import InputError

MAX_LINE_CHARS: Final = 1 << 24
MAX_RECORD_LINES: Final = 1000
MAX_RECORD_CHARS: Final = 1 << 24


class LineFeed:
    """Lines with their numbers, one at a time, with some put back.

    Lines end at LF, CRLF or CR; a CRCRLF, which a double conversion leaves, is one end too.
    """

    def __init__(self, stream: io.TextIOBase, name: str) -> None:
        self._stream = stream
        self.name = name
        self._back: deque[str] = deque()
        self._bare_cr = False
        self.line = 0

    def next(self) -> str | None:
        """Return the next line with its end, None after the last."""
        if self._back:
            self.line += 1
            return self._back.popleft()
        try:
            text = self._stream.readline(MAX_LINE_CHARS)
            if self._bare_cr and text == "\r\n":
                text = self._stream.readline(MAX_LINE_CHARS)
        except READ_ERRORS as error:
            raise read_error(f"{self.name}, after line {self.line}", error) from None
        if not text:
            return None
        self.line += 1
        if len(text) >= MAX_LINE_CHARS:
            raise InputError(
                f"{self.name}, line {self.line}: longer than {MAX_LINE_CHARS:,} characters; "
                "this is not a table"
            )
        self._bare_cr = text.endswith("\r")
        return text

    def put_back(self, lines: list[str]) -> None:
        """Put lines back in front."""
        self._back.extendleft(reversed(lines))
        self.line -= len(lines)


def read_separated(feed: LineFeed, separator: str, *, skip_blanks: bool) -> Iterator[RawRecord]:
    """Read a quoted table.

    Args:
        feed: lines.
        separator: one character.
        skip_blanks: whether blanks after a separator are dropped, so that `a, "b"` is quoted.

    Yields:
        Records; one without fields for a blank line.
    """
    # The limit belongs to the whole process; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_CHARS))
    width = 0
    while (line := feed.next()) is not None:
        start = feed.line
        text = line.rstrip("\r\n")
        if '"' in text:
            record = _read_quoted(feed, line, start, separator, skip_blanks, width)
            width = width or len(record.fields)
            yield record
            continue
        fields = text.split(separator) if text.strip(" ") else []
        if skip_blanks:
            fields = [field.lstrip(" ") for field in fields]
        width = width or len(fields)
        yield RawRecord(start, fields, _nul_problem(text))


def _read_quoted(
    feed: LineFeed, line: str, start: int, separator: str, skip_blanks: bool, width: int
) -> RawRecord:
    """Read a record that begins with a line with quotes.

    A record of several lines that has not the `width` of the first record is taken for a
    quote that closed by chance at another one far below.
    """
    lines = [line]

    def supply() -> Iterator[str]:
        yield line
        n_chars = len(line)
        while len(lines) < MAX_RECORD_LINES and n_chars < MAX_RECORD_CHARS:
            following = feed.next()
            if following is None:
                return
            lines.append(following)
            n_chars += len(following)
            yield following

    reader = csv.reader(supply(), delimiter=separator, skipinitialspace=skip_blanks, strict=True)
    try:
        fields = next(reader)
        trusted = len(lines) == 1 or len(fields) == width or width == 0
    except (csv.Error, StopIteration):
        trusted = False
    if not trusted:
        feed.put_back(lines[1:])
        return _read_misquoted(line.rstrip("\r\n"), start, separator, skip_blanks)
    return RawRecord(start, fields, _nul_problem("".join(lines)))


def _read_misquoted(text: str, start: int, separator: str, skip_blanks: bool) -> RawRecord:
    """Read a line that breaks the rules of quoting, as one record."""
    if text.count('"') % 2:
        return RawRecord(start, text.split(separator), "a quote is opened and not closed")
    # Text after a closing quote, such as a blank: the csv module's lenient reading is right.
    fields = next(csv.reader([text], delimiter=separator, skipinitialspace=skip_blanks))
    return RawRecord(start, fields, _nul_problem(text))


def read_smiles_lines(feed: LineFeed) -> Iterator[RawRecord]:
    """Read one SMILES a line, then blanks or tabs, then a name of any words.

    Quotes around the SMILES or around the whole line are removed; no SMILES has any.

    Yields:
        Records of two fields, the name "" where there is none; one without fields for a blank
        line.
    """
    while (line := feed.next()) is not None:
        text = _unquote(line.strip())
        smiles, *name = text.split(None, 1) or [""]
        fields = [_unquote(smiles), *(name or [""])] if text else []
        yield RawRecord(feed.line, fields, _nul_problem(text))


def _unquote(text: str) -> str:
    for quote in "\"'":
        if len(text) > 1 and text[0] == text[-1] == quote and text.count(quote) == 2:
            return text[1:-1].strip()
    return text


def read_blank_separated(feed: LineFeed) -> Iterator[RawRecord]:
    """Read a table whose columns are parted by runs of blanks, without quotes.

    Yields:
        Records; one without fields for a blank line.
    """
    while (line := feed.next()) is not None:
        yield RawRecord(feed.line, line.split(), _nul_problem(line))


def _nul_problem(text: str) -> str | None:
    # RDKit would stop reading at a NUL and predict for the part before it.
    return "a NUL character in the line" if "\0" in text else None


def trim_blank_lines(records: Iterator[RawRecord]) -> Iterator[RawRecord]:
    """Drop the blank lines before the first record and after the last; keep those between."""
    started = False
    first_blank = n_blank = 0
    for record in records:
        if not record.fields:
            first_blank = first_blank if n_blank else record.line
            n_blank += 1
            continue
        if started:
            for i in range(n_blank):
                yield RawRecord(first_blank + i, [])
        started, n_blank = True, 0
        yield record

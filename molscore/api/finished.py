"""A table of predictions that seems to be finished: compared with the input it was made of."""

import csv
import gzip
import json
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, Final, cast

from molscore.data.beside import partial_path
from molscore.data.outputs import Output
from molscore.data.records import Record, TableReader
from molscore.data.tables import TableWriter, open_writer
from molscore.data.writers import OutputFormat
from molscore.errors import ConfigError
from molscore.predict.chunks import FIRST_ROWS, RowRange
from molscore.predict.stream import Summary

LOGGER: Final = logging.getLogger(__name__)
_ADVICE: Final = "give another --output, or --force instead of --resume"
_SHOWN: Final = 80
_DAMAGED: Final = (OSError, EOFError, zlib.error, ValueError, csv.Error, RecursionError, IndexError)

Predict = Callable[[TableReader, TableWriter, RowRange], object]


def is_finished(output: str | Path, *, force: bool) -> bool:
    """Return whether an output is there, and none that is half-written."""
    path = Path(output).resolve()
    return path.is_file() and not force and not partial_path(path).exists()


@dataclass(frozen=True)
class Finished:
    """An output that seems to be finished, to be compared with what would be written.

    Attributes:
        output: its path.
        form: csv, tsv or jsonl.
        columns: that it should have.
        kept: positions of the input columns that are its first ones.
        status_index: position of the status among its columns.
    """

    output: Path
    form: str
    columns: Sequence[str]
    kept: Sequence[int]
    status_index: int

    def compare(self, reader: TableReader, rows: RowRange, predict: Predict) -> Summary:
        """Compare the input cells of all rows, and the first rows with what is predicted.

        Args:
            reader: the input.
            rows: those wanted.
            predict: predicts some rows of a reader to a writer.

        Returns:
            The counts of the output.

        Raises:
            ConfigError: if it is not what would be written.
        """
        seen: list[Record] = []

        def noted() -> Iterator[Record]:
            for record in reader:
                if rows.holds(record.row):
                    seen.append(record)
                yield record

        again = TableReader(
            name=reader.name,
            columns=reader.columns,
            smiles_index=reader.smiles_index,
            info=reader.info,
            records=noted(),
            close=lambda: None,
        )
        few = RowRange(rows.skip, FIRST_ROWS if rows.limit is None else min(rows.limit, FIRST_ROWS))
        head = _Memory()
        with self._writer(head) as writer:
            predict(again, writer, few)
        records = chain(seen, _wanted(reader, rows))
        try:
            with self._open() as file:
                expected = head.take()
                self._check_head(expected, file.read(len(expected)))
            with self._open() as file:
                counts, n_rows = self._check_rows(file, records)
        except _DAMAGED as error:
            raise self._refusal(f"it cannot be read ({type(error).__name__}: {error})") from None
        if counts.total() != n_rows:
            raise ConfigError(
                f"--resume: {self.output} exists and has {counts.total():,} rows, and the input "
                f"now {n_rows:,}; {_ADVICE}"
            )
        LOGGER.info("%s is finished; nothing is left to do", self.output)
        return Summary(n_read=n_rows, n_ok=counts["ok"], counts=counts)

    def _check_head(self, head: bytes, found: bytes) -> None:
        if found == head:
            return
        lines = zip_longest(head.split(b"\n"), found.split(b"\n"), fillvalue=b"")
        ours, theirs = next((a, b) for a, b in lines if a != b)
        raise self._refusal(_parting(ours, theirs))

    def _check_rows(self, file: IO[bytes], records: Iterable[Record]) -> tuple[Counter[str], int]:
        """Return the rows of the output by status, and the number of rows of the input."""
        statuses: Counter[str] = Counter()
        n_rows = 0
        memory = _Memory()
        with self._writer(memory) as writer:
            file.read(len(memory.take()))  # the header

            def written(record: Record) -> bytes:
                writer.write([[*(record.fields[i] for i in self.kept), *self._blanks()]])
                return memory.take().rstrip(b"\n")

            left = True
            for record in records:
                n_rows += 1
                if left and (status := self._status(file, record, written)) is not None:
                    statuses[status] += 1
                else:
                    left = False
            while left and (status := self._status(file, None, written)) is not None:
                statuses[status] += 1
        return statuses, n_rows

    def _blanks(self) -> list[str]:
        # One of them makes the separator behind the cells of the input.
        return [""] * (len(self.columns) - len(self.kept) if self.form == "jsonl" else 1)

    def _status(
        self, file: IO[bytes], record: Record | None, written: Callable[[Record], bytes]
    ) -> str | None:
        """Read a row and return its status; None at the end.

        Args:
            file: the output, at the start of a row.
            record: what the row should have been made of; None if that is not known.
            written: returns the bytes of the cells that come from a record.
        """
        if self.form == "jsonl":
            return self._json_status(file.readline(), record, written)
        text = b"" if record is None or not self.kept else written(record)
        found = file.read(len(text))
        if found and found != text:
            raise self._changed(record, text, found)
        rest = _read_row(file)
        if not found and not rest:
            return None
        # The cells of the input are compared as bytes: a line end in a cell need not be read
        # back as it was.
        mark = "\t" if self.form == "tsv" else ","
        cells = next(csv.reader([rest.decode("utf-8", "surrogatepass")], delimiter=mark))
        n_before = len(self.kept) if text else 0
        if len(cells) != len(self.columns) - n_before:
            raise self._changed(record, text, found + rest)
        return cells[self.status_index - n_before]

    def _json_status(
        self, line: bytes, record: Record | None, written: Callable[[Record], bytes]
    ) -> str | None:
        if not line:
            return None
        row = json.loads(line.decode("utf-8", "surrogatepass"))
        if not isinstance(row, dict):
            raise self._changed(record, b"{", line)
        cells = list(row.items())
        if record is not None:
            expected = written(record)
            ours = list(json.loads(expected.decode("utf-8", "surrogatepass")).items())
            n = len(self.kept)
            if cells[:n] != ours[:n] or [key for key, _ in cells] != [key for key, _ in ours]:
                raise self._changed(record, expected, line)
        return str(cells[self.status_index][1])

    def _changed(self, record: Record | None, ours: bytes, theirs: bytes) -> ConfigError:
        row = "behind the last row" if record is None else f"at row {record.row + 1:,}"
        return self._refusal(f"{row} {_parting(ours, theirs)}")

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            f"--resume: {self.output} exists and is not what this command writes: {why}; {_ADVICE}"
        )

    def _writer(self, memory: "_Memory") -> TableWriter:
        return open_writer("-", self.columns, format=cast(OutputFormat, self.form), output=memory)

    def _open(self) -> IO[bytes]:
        if self.output.suffix.lower() == ".gz":
            return cast(IO[bytes], gzip.open(self.output, "rb"))
        return self.output.open("rb")


def _wanted(reader: TableReader, rows: RowRange) -> Iterator[Record]:
    """Yield the rows that are wanted, and read none behind them."""
    row = rows.skip
    while rows.holds_after(row) and (record := next(iter(reader), None)) is not None:
        row = record.row + 1
        if rows.holds(record.row):
            yield record


def _read_row(file: IO[bytes]) -> bytes:
    """Read a row to its end, which is a line end outside quotes; nothing at the end of the file.

    Raises:
        ValueError: if it has none.
    """
    lines = [file.readline()]
    quotes = lines[0].count(b'"')
    while quotes % 2 and lines[-1]:
        lines.append(file.readline())
        quotes += lines[-1].count(b'"')
    row = b"".join(lines)
    if row and not row.endswith(b"\n"):
        raise ValueError("the last row is cut")
    return row


def _parting(ours: bytes, theirs: bytes) -> str:
    """Say what was expected and what is there, from where they part: rows may be long."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
    start = max(0, same - _SHOWN // 4)
    a, b = (x[start : start + _SHOWN].decode("utf-8", "replace") for x in (ours, theirs))
    return f"expected {a!r}, found {b!r}"


class _Memory(Output):
    """Bytes that go nowhere."""

    def __init__(self) -> None:
        self._bytes = BytesIO()

    def write(self, data: bytes) -> int:
        return self._bytes.write(data)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        data = self._bytes.getvalue()
        self._bytes = BytesIO()
        return data

    def flush(self) -> None:
        pass

    def commit(self) -> None:
        pass

    def discard(self) -> None:
        pass

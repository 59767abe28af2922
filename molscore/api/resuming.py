"""Going on with a table of predictions that a run left half-written."""

import gzip
import json
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Final, cast

from molscore.chem.version import rdkit_version
from molscore.data.kept import KeptOutput, partial_path
from molscore.data.marks import About
from molscore.data.outputs import Output
from molscore.data.records import Record, TableOptions, TableReader
from molscore.data.tables import TableWriter, open_table, open_writer
from molscore.data.writers import OutputFormat, resolve_format
from molscore.errors import ConfigError
from molscore.predict.chunks import CHUNK_ROWS, FIRST_ROWS, RowRange
from molscore.predict.stream import Summary

LOGGER: Final = logging.getLogger(__name__)
_CONTINUED: Final = ("csv", "tsv", "jsonl")

Predict = Callable[[TableReader, TableWriter, RowRange], object]


def can_be_kept(output: str | Path, wanted: OutputFormat, *, resume: bool) -> bool:
    """Return whether a half-written output can be gone on with.

    Raises:
        ConfigError: if it cannot, and `resume` asks for it.
    """
    if str(output) == "-":
        if resume:
            raise ConfigError("--resume goes on with a file; name it with --output")
        return False
    chosen, _ = resolve_format(output, wanted)
    if resume and chosen not in _CONTINUED:
        raise ConfigError(
            f"--resume cannot go on with {chosen}, of which nothing can be read before its end is "
            f"written; predict to {', '.join(_CONTINUED)} (also .gz), or leave --resume out"
        )
    return chosen in _CONTINUED


def describe_run(
    reader: TableReader, columns: Sequence[str], rows: RowRange, **settings: Any
) -> About:
    """Return what decides the bytes of an output, apart from the rows of the input.

    Args:
        reader: the input.
        columns: of the output.
        rows: those wanted.
        settings: option -> JSON value.
    """
    return {
        "molscore": version("molscore"),
        "RDKit": rdkit_version(),
        "chunks of": [FIRST_ROWS, CHUNK_ROWS],
        "the input columns": reader.columns,
        "the SMILES in column": reader.columns[reader.smiles_index],
        "the output columns": list(columns),
        "--skip": rows.skip,
        "--limit": rows.limit,
        **{f"--{name.replace('_', '-')}": value for name, value in settings.items()},
    }


def open_kept(
    output: str | Path,
    about: About,
    reader: TableReader,
    rows: RowRange,
    *,
    force: bool,
    resume: bool,
) -> tuple[KeptOutput, Summary]:
    """Open an output that can be gone on with, and the input behind the rows that are done.

    Returns:
        The output, and the counts of the rows in it.

    Raises:
        ConfigError: see `KeptOutput`.
        InputError: if the rows that are done are not those of the input.
    """
    kept = KeptOutput(output, about, force=force, resume=resume)
    if not resume:
        return kept, Summary()
    try:
        kept.continue_from(iter(reader), rows.skip)
    except BaseException:
        kept.discard()
        raise
    counts = Counter(kept.mark.counts) if kept.mark else Counter[str]()
    if kept.mark:
        LOGGER.info(
            "going on at row %s; %s rows are done",
            f"{kept.mark.next_row + 1:,}",
            f"{counts.total():,}",
        )
    return kept, Summary(n_read=counts.total(), n_ok=counts["ok"], counts=counts)


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
        status_index: position of the status among them.
    """

    output: Path
    form: str
    columns: Sequence[str]
    status_index: int

    def compare(self, reader: TableReader, rows: RowRange, predict: Predict) -> Summary:
        """Compare its first rows with what is predicted for them, and the number of rows.

        Args:
            reader: the input.
            rows: those wanted.
            predict: predicts some rows of a reader to a writer.

        Returns:
            The counts of the output.

        Raises:
            ConfigError: if it is not what would be written.
        """
        n_rows = 0

        def counted() -> Iterator[Record]:
            nonlocal n_rows
            for record in reader:
                n_rows = record.row + 1
                yield record

        records = counted()
        head = _Memory()
        few = RowRange(rows.skip, FIRST_ROWS if rows.limit is None else min(rows.limit, FIRST_ROWS))
        again = TableReader(
            name=reader.name,
            columns=reader.columns,
            smiles_index=reader.smiles_index,
            info=reader.info,
            records=records,
            close=lambda: None,
        )
        with open_writer(
            "-", self.columns, format=cast(OutputFormat, self.form), output=head
        ) as writer:
            predict(again, writer, few)
        deque(records, maxlen=0)
        return self._check(head.getvalue(), rows.count(n_rows) or 0)

    def _check(self, head: bytes, n_rows: int) -> Summary:
        with self._open() as file:
            found = file.read(len(head))
        if found != head:
            lines = zip_longest(head.split(b"\n"), found.split(b"\n"), fillvalue=b"")
            ours, theirs = next((a, b) for a, b in lines if a != b)
            raise ConfigError(
                f"--resume: {self.output} exists and is not what this command writes: expected "
                f"{ours[:80]!r}, found {theirs[:80]!r}; give another --output, or --force "
                "instead of --resume"
            )
        counts = Counter(self._statuses())
        if counts.total() != n_rows:
            raise ConfigError(
                f"--resume: {self.output} exists and has {counts.total():,} rows, and the input "
                f"now {n_rows:,}; give another --output, or --force instead of --resume"
            )
        LOGGER.info("%s is finished; nothing is left to do", self.output)
        return Summary(n_read=n_rows, n_ok=counts["ok"], counts=counts)

    def _open(self) -> IO[bytes]:
        if self.output.suffix.lower() == ".gz":
            return cast(IO[bytes], gzip.open(self.output, "rb"))
        return self.output.open("rb")

    def _statuses(self) -> Iterator[str]:
        if self.form == "jsonl":
            with self._open() as file:
                for line in file:
                    yield list(json.loads(line).values())[self.status_index]
            return
        options = TableOptions(
            format="csv",
            separator="tab" if self.form == "tsv" else "comma",
            encoding="utf-8",
            header="yes",
            smiles_column="1",
        )
        with open_table(self.output, options) as table:
            for record in table:
                yield record.fields[self.status_index]


class _Memory(Output):
    """Bytes that go nowhere."""

    def __init__(self) -> None:
        self._bytes = BytesIO()

    def write(self, data: bytes) -> int:
        return self._bytes.write(data)

    def getvalue(self) -> bytes:
        return self._bytes.getvalue()

    def flush(self) -> None:
        pass

    def commit(self) -> None:
        pass

    def discard(self) -> None:
        pass

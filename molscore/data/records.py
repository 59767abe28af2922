"""What a table is made of: the options to read it, its records, what was found out about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from molscore.config import Config
from molscore.errors import ConfigError, InputError

SEPARATOR_NAMES: Final = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "space": " ",
    "pipe": "|",
}


@dataclass(frozen=True, kw_only=True)
class TableOptions(Config):
    """How to read a table. Every field overrides a guess.

    Attributes:
        format: file format; `csv` is a quoted table with any one separator, `tsv` with tabs,
            `smi` one SMILES a line, then blanks or a tab, then a name of any words. `auto`
            goes by content first, by file name second.
        separator: one character, or `comma`, `semicolon`, `tab`, `space`, `pipe`. `space`
            means any run of blanks.
        encoding: a Python codec name; a byte that does not fit is then an error. By default a
            byte order mark is obeyed, else the text is UTF-8, and bytes that are not UTF-8 are
            read as cp1252 (Latin-1 where cp1252 has no character).
        header: whether the first line holds column names.
        decimal: decimal mark of the numbers in target columns.
        smiles_column: name of the SMILES column, or its number counted from 1.
        sheet: sheet of an xlsx workbook; the first that is not empty by default.
    """

    format: Literal["auto", "csv", "tsv", "smi", "xlsx", "sdf", "parquet"] = "auto"
    separator: str | None = None
    encoding: str | None = None
    header: Literal["auto", "yes", "no"] = "auto"
    decimal: Literal["auto", ".", ","] = "auto"
    smiles_column: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None:
            mark = SEPARATOR_NAMES.get(self.separator.lower(), self.separator)
            if len(mark) != 1 or mark in '"\r\n\0':
                raise ConfigError(
                    f"separator {self.separator!r} is neither one character "
                    f"nor one of {', '.join(SEPARATOR_NAMES)}"
                )
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, ValueError):
                raise ConfigError(f"encoding {self.encoding!r} is not known to Python") from None

    @property
    def separator_char(self) -> str | None:
        """The separator as one character, names resolved."""
        if self.separator is None:
            return None
        return SEPARATOR_NAMES.get(self.separator.lower(), self.separator)


class Record(NamedTuple):
    """One record of a table.

    Attributes:
        row: record number, from 0; the header and blank lines around the table do not count.
        line: line of the file where the record starts, from 1; the record number + 1 in
            formats without lines (Parquet, data frames).
        fields: one text for each column, untouched. Of a record with too many fields the last
            holds all that is left, of one with too few the missing ones are "".
        problem: why the record cannot be trusted (a ragged row, say), or None. Its fields are
            for passing on only: a SMILES read from them may be a neighbour's.
    """

    row: int
    line: int
    fields: list[str]
    problem: str | None


class RawRecord(NamedTuple):
    """A record before columns are known: line number, fields as found, problem."""

    line: int
    fields: list[str]
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class TableInfo:
    """What was found out about a table, or set by options.

    Attributes:
        format: csv (any separator), smi, xlsx, sdf, parquet or frame.
        separator: one character; " " for runs of blanks; None where there is none.
        encoding: Python codec name, None where there is none.
        compression: "gzip" or None.
        header: whether the first line was taken as column names.
        smiles_found_by: "option", "name", "content", "only column" or "format".
        notes: guesses worth telling the user, one sentence each.
    """

    format: str
    separator: str | None = None
    encoding: str | None = None
    compression: str | None = None
    header: bool = True
    smiles_found_by: str = "name"
    notes: tuple[str, ...] = ()


class TableReader:
    """A table, read once from front to back. A context manager and an iterator of `Record`.

    Attributes:
        name: for messages; "stdin" where the table comes from there.
        columns: column names as they stand in the file, blanks and repeats included.
        smiles_index: position of the SMILES column.
        info: how the table was read.
    """

    def __init__(
        self,
        *,
        name: str,
        columns: list[str],
        smiles_index: int,
        info: TableInfo,
        records: Iterator[Record],
        close: Callable[[], None],
        share_read: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.name: Final = name
        self.columns: Final = columns
        self.smiles_index: Final = smiles_index
        self.info: Final = info
        self._records = records
        self._close = close
        self._share_read = share_read

    @property
    def is_live(self) -> bool:
        """Whether rows come through a pipe, and perhaps slowly."""
        return self._share_read() is None

    def estimate_rows(self, n_read: int) -> int | None:
        """Return how many rows there may be, by the share of the file that `n_read` rows took.

        None where the size of the file is not known.
        """
        share = self._share_read()
        return round(n_read / share) if share else None

    def __iter__(self) -> Iterator[Record]:
        return self._records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open. stdin stays open."""
        self._close()


def fit_fields(raw: RawRecord, n_columns: int, separator: str | None) -> RawRecord:
    """Give a record as many fields as the table has columns.

    Too many fields are a problem unless the extra ones are blank (a trailing separator). Too
    few are a problem, except that a blank line is a record of blank fields.
    """
    fields = raw.fields
    n_fields = len(fields)
    if n_fields == n_columns:
        return raw
    problem = raw.problem
    if n_fields < n_columns:
        if not problem and any(field.strip() for field in fields):
            problem = _ragged(fields, n_columns)
        return RawRecord(raw.line, fields + [""] * (n_columns - n_fields), problem)
    extra = fields[n_columns:]
    if not problem and not any(field.strip() for field in extra):
        return RawRecord(raw.line, fields[:n_columns], None)
    last = (separator or " ").join(fields[n_columns - 1 :])
    return RawRecord(
        raw.line, [*fields[: n_columns - 1], last], problem or _ragged(fields, n_columns)
    )


def _ragged(fields: list[str], n_columns: int) -> str:
    said = f"ragged row: {len(fields)} fields where the table has {n_columns} columns"
    if len(fields) <= n_columns:
        return said
    if any(field.startswith("InChI=") for field in fields):
        return f"{said}; looks like InChI, whose commas need quotes"
    return f"{said}; does a value hold an unquoted separator?"


def no_records(name: str) -> InputError:
    """The error for a table that holds nothing at all."""
    return InputError(f"{name} is empty: no line with text in it")

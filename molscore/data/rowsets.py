"""Any table as plain records, before the SMILES column matters: formats and headers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from molscore.data.cells import cell_text
from molscore.data.columns import (
    is_header,
    is_header_word,
    is_smiles_name,
    is_word,
    smiles_shares,
)
from molscore.data.layout import choose_layout
from molscore.data.records import (
    RawRecord,
    Record,
    TableInfo,
    TableOptions,
    fit_fields,
    no_records,
)
from molscore.data.streams import ByteSource, as_text, open_source
from molscore.data.values import is_number_like
from molscore.errors import ConfigError, InputError

SAMPLE_RECORDS: Final = 200
MAX_ABOVE: Final = 20
"""Records looked at for column names below a title."""
_TEXT_FORMATS: Final = ("csv", "tsv", "smi")


@dataclass
class RowSet:
    """An opened table.

    Attributes:
        name: for messages.
        columns: names, made up where the table has none.
        named: whether the names come from the table.
        sample: the first records' fields, header apart.
        records: all records, from the first.
        info: see `TableInfo`.
        close: closes what is open.
        smiles_index: where the format itself says which column holds the SMILES (SDF, and a
            list, unless its first column holds none or its header names another).
    """

    name: str
    columns: list[str]
    named: bool
    sample: list[list[str]]
    records: Iterator[Record]
    info: TableInfo
    close: Callable[[], None]
    smiles_index: int | None = None
    share_read: Callable[[], float | None] = lambda: None


def open_rows(path: str | Path, options: TableOptions) -> RowSet:
    """Open a table of any format.

    Args:
        path: a file, or "-" for stdin.
        options: see `TableOptions`.

    Raises:
        InputError: if it cannot be read or holds nothing.
        ConfigError: if options do not go with the format.
    """
    source = open_source(path)
    try:
        file_format = _detect_format(source, options)
        _check_options(options, file_format)
        opener = _open_text if file_format in _TEXT_FORMATS else _opener(file_format)
        rows = opener(source, options)
        if file_format not in {"xlsx", "parquet"}:  # those are read from all ends
            rows.share_read = source.share_read
        return rows
    except BaseException:
        source.close()
        raise


def _opener(file_format: str) -> Callable[[ByteSource, TableOptions], RowSet]:
    # Imported when needed: these formats bring large libraries with them.
    if file_format == "xlsx":
        from molscore.data.workbook import open_xlsx  # noqa: PLC0415

        return open_xlsx
    if file_format == "parquet":
        from molscore.data.parquet import open_parquet  # noqa: PLC0415

        return open_parquet
    from molscore.data.structures import open_sdf  # noqa: PLC0415

    return open_sdf


def read_rows(path: str | Path, options: TableOptions) -> tuple[list[str], list[Record]]:
    """Read a whole table.

    Returns:
        The column names and all records.
    """
    rows = open_rows(path, options)
    try:
        return rows.columns, list(rows.records)
    finally:
        rows.close()


def _extension(source: ByteSource) -> str:
    if source.path is None:
        return ""
    name = source.path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _detect_format(source: ByteSource, options: TableOptions) -> str:
    """Find the format: by content, then by file name. A text format is "csv" here."""
    head, extension = source.head, _extension(source)
    is_zip, is_parquet = head.startswith(b"PK\x03\x04"), head.startswith(b"PAR1")
    if options.format != "auto":
        expected = {"xlsx": is_zip, "parquet": is_parquet}
        if not expected.get(options.format, True):
            raise InputError(f"{source.name} is not {options.format}: its first bytes differ")
        return options.format
    if is_parquet:
        return "parquet"
    if is_zip:
        return "xlsx"
    if extension in {".xlsx", ".parquet"}:
        raise InputError(
            f"{source.name} is not {extension[1:]}, as its name says: its first bytes differ"
        )
    start = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    is_block = b"V2000" in start[:400] or b"V3000" in start[:400] or b"\nM  END" in start
    if extension in {".sdf", ".sd", ".mol"} and start.strip() and not is_block:
        raise InputError(
            f"{source.name} is not an SDF, as its name says: it begins without a mol block; "
            "--format csv reads it as a table of text"
        )
    if extension in {".sdf", ".sd", ".mol"} or (is_block and b"\n" in start):
        return "sdf"
    return "csv"


def _check_options(options: TableOptions, file_format: str) -> None:
    if options.sheet is not None and file_format != "xlsx":
        raise ConfigError(f"--sheet goes with xlsx; this table is {file_format}")
    if file_format in {"xlsx", "parquet"} and (options.separator or options.encoding):
        raise ConfigError(f"a separator or an encoding does not go with {file_format}")


def _open_text(source: ByteSource, options: TableOptions) -> RowSet:
    text = as_text(source, options.encoding)
    layout = choose_layout(text.head, options, _extension(source))
    mark = {"smi": None, "blanks": " "}.get(layout.kind, layout.separator)
    info = TableInfo(
        format="smi" if layout.kind == "smi" else "csv",
        separator=mark,
        encoding=text.encoding,
        compression=source.compression,
    )
    raw = layout.read(text.stream, source.name)
    return build_rows(source.name, raw, options, info, source.close)


def build_rows(
    name: str,
    raw: Iterator[RawRecord],
    options: TableOptions,
    info: TableInfo,
    close: Callable[[], None],
) -> RowSet:
    """Decide on the header and the columns of a table that may have none."""
    sample = list(islice(raw, SAMPLE_RECORDS))
    if not sample:
        raise no_records(name)
    notes: tuple[str, ...] = ()
    if options.header == "auto" and (
        n_above := _lines_above_header(sample, is_list=info.format == "smi")
    ):
        above = " ".join(cell.strip() for cell in sample[0].fields).strip()[:60]
        notes = (
            f"left out: {n_above} lines above the column names, from {above!r} on; "
            "--header no if they are data",
        )
        sample = sample[n_above:]
    fields = [record.fields for record in sample if record.fields]
    if options.header == "auto":
        named, note = is_header(fields[0], fields[1:])
        if note and info.format == "smi" and not any(map(is_header_word, fields[0])):
            # In a list, an unknown word is more likely a SMILES that cannot be read.
            named, note = False, None
        notes += (note,) if note else ()
    else:
        named = options.header == "yes"
    if named:
        columns, body, fields = list(sample[0].fields), sample[1:], fields[1:]
        if sample[0].problem:
            raise InputError(f"{name}, line {sample[0].line}: {sample[0].problem}")
        if info.format == "smi" and not columns[1]:
            columns = [columns[0], "name"] if _has_names(fields, options) else columns[:1]
    else:
        columns, body = _make_columns(fields, info, options), sample
    found = TableInfo(**{**vars(info), "header": named, "notes": info.notes + notes})
    fitted = [fit_fields(record, len(columns), info.separator).fields for record in body]
    records = number_records(chain(body, raw), len(columns), info.separator)
    first = info.format == "smi" and _is_list_of_smiles(
        columns, fitted, named=named, said=options.format == "smi"
    )
    return RowSet(name, columns, named, fitted, records, found, close, 0 if first else None)


def _lines_above_header(sample: list[RawRecord], *, is_list: bool) -> int:
    """Count the titles and comments above the column names, where those are beyond doubt.

    Below a title, one of the names must be a usual one; in a list, say SMILES.
    """
    for k, record in enumerate(sample[:MAX_ABOVE]):
        cells = [cell for cell in record.fields if cell.strip()]
        if any(map(is_smiles_name if is_list else is_header_word, cells)):
            rest = [other.fields for other in sample[k + 1 :] if other.fields]
            if is_header(record.fields, rest) == (True, None):
                return k
        title = len(cells) == 1 and is_word(cells[0])
        if cells and not title and not cells[0].lstrip().startswith("#"):
            return 0
    return 0


def _is_list_of_smiles(
    columns: list[str], rows: list[list[str]], *, named: bool, said: bool
) -> bool:
    """Whether the first column holds the SMILES, even if the names could be read as SMILES.

    Also where none can be read, if the user said that it is a list, or if its cells are more
    like broken SMILES than like words or numbers.
    """
    if named and any(map(is_smiles_name, columns)):
        return False
    shares = smiles_shares(rows, len(columns))
    if shares[0] >= 0.5 or said:
        return True
    cells = [row[0] for row in rows if row[0].strip()]
    broken = sum(not is_word(cell) and not is_number_like(cell) for cell in cells)
    return max(shares) < 0.5 and 2 * broken >= len(cells) > 0


def _has_names(fields: list[list[str]], options: TableOptions) -> bool:
    return options.format == "smi" or any(row[1] for row in fields)


def _make_columns(fields: list[list[str]], info: TableInfo, options: TableOptions) -> list[str]:
    """Make up names: `smiles` for the column of SMILES, `column_N` for the others."""
    if info.format == "smi":
        return ["smiles", "name"] if _has_names(fields, options) else ["smiles"]
    counts = [len(row) for row in fields]
    n_columns = max(set(counts), key=lambda n: (counts.count(n), n))
    shares = smiles_shares(fields, n_columns)
    columns = [f"column_{i + 1}" for i in range(n_columns)]
    if max(shares) >= 0.5 or n_columns == 1:
        columns[shares.index(max(shares))] = "smiles"
    return columns


def number_records(
    raw: Iterable[RawRecord], n_columns: int, separator: str | None
) -> Iterator[Record]:
    """Make records of the fields found, see `fit_fields`."""
    for row, record in enumerate(raw):
        line, fields, problem = fit_fields(record, n_columns, separator)
        yield Record(row, line, fields, problem)


def frame_rows(frame: Any, name: str = "data frame") -> RowSet:
    """Take a pandas DataFrame as a table. Missing values become blank cells.

    Raises:
        InputError: if it is none.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "itertuples")):
        raise InputError(f"expected the path of a table or a DataFrame, got {type(frame).__name__}")
    columns = [str(column) for column in frame.columns]
    raw = [
        RawRecord(i + 1, [cell_text(value) for value in values])
        for i, values in enumerate(frame.itertuples(index=False, name=None))
    ]
    sample = [record.fields for record in raw[:SAMPLE_RECORDS]]
    records = number_records(raw, len(columns), None)
    info = TableInfo(format="frame", header=True)
    named = not any(isinstance(column, int) for column in frame.columns) or any(
        is_smiles_name(column) for column in columns
    )
    return RowSet(name, columns, named, sample, records, info, lambda: None)

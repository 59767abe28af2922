"""Tables in: any format from a file or stdin as a stream of records with a SMILES column.

with open_table("library.smi.gz") as table:
    for record in table:
        smiles = record.fields[table.smiles_index]
"""

from pathlib import Path
from typing import Any

from molscore.data.columns import find_column, find_smiles_column
from molscore.data.records import Record, TableInfo, TableOptions, TableReader
from molscore.data.rowsets import RowSet, frame_rows, open_rows
from molscore.data.writers import TableWriter, format_float, open_writer

__all__ = [
    "Record",
    "TableInfo",
    "TableOptions",
    "TableReader",
    "TableWriter",
    "format_float",
    "open_frame",
    "open_table",
    "open_writer",
]

_DEFAULT = TableOptions()


def open_table(path: str | Path, options: TableOptions = _DEFAULT) -> TableReader:
    """Open a table of molecules.

    What is not given by `options` is found from the content: format, compression, encoding,
    separator, header (`columns.is_header` states the policy) and the SMILES column. Detection
    looks at the first 256 KiB; the rest is read as it is needed, from stdin too (xlsx and
    Parquet from stdin are held in memory; the columns of an SDF need a look at all of it).

    Blank lines between records are records with blank fields; those before the first and
    after the last are not records.

    Args:
        path: a file, or "-" for stdin.
        options: see `TableOptions`.

    Returns:
        The reader; to be closed, best as a context manager.

    Raises:
        InputError: if the table is missing, empty, damaged, binary, or has no SMILES column.
        ConfigError: if an option does not fit, or the SMILES column is ambiguous.
    """
    rows = open_rows(path, options)
    try:
        return _as_reader(rows, options)
    except BaseException:
        rows.close()
        raise


def open_frame(frame: Any, options: TableOptions = _DEFAULT) -> TableReader:
    """Take a pandas DataFrame as a table of molecules, see `open_table`."""
    return _as_reader(frame_rows(frame), options)


def _as_reader(rows: RowSet, options: TableOptions) -> TableReader:
    note: str | None = None
    if options.smiles_column is not None:
        index = find_column(
            rows.columns, options.smiles_column, flag="--smiles-column", table=rows.name
        )
        how = "option"
    elif rows.smiles_index is not None:
        index, how = rows.smiles_index, "format"
    else:
        index, how, note = find_smiles_column(
            rows.columns, rows.sample, named=rows.named, table=rows.name
        )
    notes = rows.info.notes + ((note,) if note else ())
    return TableReader(
        name=rows.name,
        columns=rows.columns,
        smiles_index=index,
        info=TableInfo(**{**vars(rows.info), "smiles_found_by": how, "notes": notes}),
        records=rows.records,
        close=rows.close,
        share_read=rows.share_read,
    )

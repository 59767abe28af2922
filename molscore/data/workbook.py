"""Sheets of xlsx workbooks as tables. openpyxl loads when used."""

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

from molscore.data.cells import cell_text
from molscore.data.delimited import trim_blank_lines
from molscore.data.records import RawRecord, TableInfo, TableOptions, no_records
from molscore.data.rowsets import RowSet, build_rows
from molscore.data.streams import ByteSource, seekable
from molscore.errors import ConfigError, InputError


def open_xlsx(source: ByteSource, options: TableOptions) -> RowSet:
    """Open a sheet of a workbook.

    Rows of empty cells count as blank lines. Formulas give the value that was last computed
    and stored. A workbook that is gzipped or comes from stdin is held in memory.

    Raises:
        InputError: if it is not a workbook, is damaged or empty.
        ConfigError: if it has no such sheet.
    """
    file = seekable(source)

    def close() -> None:
        file.close()
        source.close()

    try:
        book = _load(file, source.name)
        return _open_sheet(book, source.name, options, close)
    except BaseException:
        file.close()
        raise


def _load(file: Any, name: str) -> Any:
    import openpyxl  # noqa: PLC0415 (only this format needs it)

    try:
        with warnings.catch_warnings():
            # openpyxl warns of styles and validations it drops; only cells matter here.
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:  # noqa: BLE001 - a damaged workbook fails in many ways
        raise InputError(f"{name} is not an xlsx workbook that can be read ({error})") from None


def _open_sheet(book: Any, name: str, options: TableOptions, close: Any) -> RowSet:
    titles = [sheet.title for sheet in book.worksheets]
    if options.sheet is not None and options.sheet not in titles:
        raise ConfigError(
            f"{name} has no sheet {options.sheet!r}; it has {', '.join(map(repr, titles))}"
        )
    for title in titles if options.sheet is None else [options.sheet]:
        rows = trim_blank_lines(_sheet_rows(book[title], f"{name}, sheet {title!r}"))
        first = next(rows, None)
        if first is None:
            continue
        others = [other for other in titles if other != title]
        notes: tuple[str, ...] = ()
        if others and options.sheet is None:
            left = ", ".join(map(repr, others))
            notes = (f"sheet {title!r} is read, not {left}; --sheet names another",)
        info = TableInfo(format="xlsx", notes=notes)
        return build_rows(name, chain([first], rows), options, info, close)
    raise no_records(name)


def _sheet_rows(sheet: Any, where: str) -> Iterator[RawRecord]:
    """Yield the rows of a sheet, cut behind the last cell that is not empty."""
    # The size a file states is often wrong; without it, rows come as they are.
    sheet.reset_dimensions()
    rows = iter(sheet.iter_rows(values_only=True))
    line = 0
    width = 0
    while True:
        try:
            cells = next(rows, None)
        except Exception as error:  # noqa: BLE001 - as in _load
            raise InputError(f"{where}, after row {line}: cannot be read ({error})") from None
        if cells is None:
            return
        line += 1
        fields = [cell_text(cell) for cell in cells]
        while fields and not fields[-1]:
            fields.pop()
        if fields:
            # Empty cells at the end of a row are left out of the file: not a ragged row.
            width = max(width, len(fields))
            fields += [""] * (width - len(fields))
        yield RawRecord(line, fields)

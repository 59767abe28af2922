"""Tables out: csv, tsv, JSON lines and Parquet, to a file or stdout.

Numbers of ours are written by `format_float`; cells that came in as text go out as that text.
"""

import csv
import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from molscore.data.gzipped import GzipOutput
from molscore.data.names import free_names
from molscore.data.outputs import Output
from molscore.errors import ConfigError

Cell = str | float | int | None
OutputFormat = Literal["auto", "csv", "tsv", "jsonl", "parquet"]

_EXTENSIONS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_GROUP_ROWS: Final = 50_000


def format_float(value: float) -> str:
    """Write a number with 6 significant digits, as short as they allow; "" for NaN.

    Predictions are float32, which carries 7 digits; the last one depends on the batch.
    """
    if math.isnan(value):
        return ""
    text = f"{value:.6g}"
    return "0" if text == "-0" else text


class TableWriter(ABC):
    """Writes one table. A context manager: a clean exit keeps the file, an exception does not.

    Attributes:
        columns: names, as given.
    """

    def __init__(self, output: Output, columns: Sequence[str]) -> None:
        self.columns: Final = list(columns)
        self._output = output

    @abstractmethod
    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write some rows and flush them.

        Args:
            rows: one cell for each column: text as it is, numbers, None for nothing.

        Raises:
            BrokenPipeError: if the reader of stdout has gone.
            MolscoreError: if the disk is full, say.
        """

    @property
    def whole(self) -> bool:
        """Whether the file, cut behind what it holds by now, could be gone on with."""
        return self._output.whole

    def _finish(self) -> None:  # noqa: B027 (most formats hold nothing back)
        """Write what is still held back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._output.discard()
            return
        try:
            self._finish()
        except BaseException:
            self._output.discard()
            raise
        self._output.commit()


def open_writer(
    path: str | Path,
    columns: Sequence[str],
    *,
    format: OutputFormat = "auto",  # noqa: A002 - the name users know it by
    force: bool = False,
    number_columns: Collection[str] = (),
    output: Output | None = None,
) -> TableWriter:
    """Open a table for writing; text formats get their header at once.

    Args:
        path: a file, or "-" for stdout. Text is gzipped if the name ends in `.gz`.
        columns: names. JSON lines and Parquet number repeated ones (`y`, `y_2`).
        format: `auto` goes by the file name; stdout gets csv.
        force: whether an existing file may be replaced.
        number_columns: columns that hold numbers; Parquet types them so even where every
            cell is empty. All others are typed by what they hold.
        output: the opened `path`, if it is; rows of a text follow what it holds.

    Raises:
        ConfigError: if the file exists and `force` is not set, if its folder does not exist,
            or if the format cannot be told from the name.
        MolscoreError: if the file cannot be created.
    """
    chosen, gzipped = resolve_format(path, format)
    if chosen == "parquet" and str(path) == "-" and sys.stdout is not None and sys.stdout.isatty():
        raise ConfigError("parquet is no text for a terminal; give --output, or pipe it")
    output = output or Output(path, force=force)
    try:
        if chosen == "parquet":
            return _ParquetWriter(output, columns, number_columns)
        sink: Any = GzipOutput(output) if gzipped else output
        if chosen == "jsonl":
            return _JsonWriter(sink, columns)
        return _CsvWriter(sink, columns, "," if chosen == "csv" else "\t")
    except BaseException:
        output.discard()
        raise


def resolve_format(path: str | Path, wanted: OutputFormat) -> tuple[str, bool]:
    """Return the format of a table that goes to `path`, and whether it is gzipped.

    Raises:
        ConfigError: if the name does not tell, and `wanted` is `auto`.
    """
    if str(path) == "-":
        return ("csv" if wanted == "auto" else wanted), False
    name = Path(path).name.lower()
    gzipped = name.endswith(".gz")
    found = _EXTENSIONS.get(Path(name.removesuffix(".gz")).suffix)
    if wanted != "auto":
        return wanted, gzipped and wanted != "parquet"
    if found is None or (gzipped and found == "parquet"):
        raise ConfigError(
            f"cannot tell the format of {path} from its name; known endings are "
            f"{', '.join(_EXTENSIONS)} (text also with .gz), or give --output-format"
        )
    return found, gzipped


class _RowText:
    """Collects what the csv module writes. It quotes line ends only if they end lines too."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, row: str) -> None:
        self._parts.append(row.removesuffix("\r\n"))

    def take(self) -> bytes:
        text = "".join(f"{part}\n" for part in self._parts)
        self._parts.clear()
        return text.encode("utf-8", "surrogatepass")


class _CsvWriter(TableWriter):
    def __init__(self, output: Output, columns: Sequence[str], separator: str) -> None:
        super().__init__(output, columns)
        self._text = _RowText()
        self._csv = csv.writer(self._text, delimiter=separator, lineterminator="\r\n")
        if not output.continued:
            self.write([self.columns])

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        for row in rows:
            cells = [_as_text(cell) for cell in row]
            if len(cells) == 1 and not cells[0].strip():
                # Unquoted it would be a blank line.
                self._text.write(f'"{cells[0]}"')
            else:
                self._csv.writerow(cells)
        self._output.write(self._text.take())
        self._output.flush()


def _as_text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(cell) if isinstance(cell, int) else format_float(float(cell))


class _JsonWriter(TableWriter):
    def __init__(self, output: Output, columns: Sequence[str]) -> None:
        super().__init__(output, columns)
        self._keys = free_names((), columns)

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        lines = [
            json.dumps(
                dict(zip(self._keys, map(_as_json, row), strict=True)),
                ensure_ascii=False,
                allow_nan=False,
            )
            for row in rows
        ]
        text = "".join(f"{line}\n" for line in lines)
        self._output.write(text.encode("utf-8", "surrogatepass"))
        self._output.flush()


def _as_json(cell: Cell) -> Cell:
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    number = float(cell)
    return float(format_float(number)) if math.isfinite(number) else None


class _ParquetWriter(TableWriter):
    """Holds rows back until there are enough for a row group and every column's type is known."""

    def __init__(
        self, output: Output, columns: Sequence[str], number_columns: Collection[str]
    ) -> None:
        super().__init__(output, columns)
        self._kinds: list[type | None] = [
            float if name in number_columns else None for name in columns
        ]
        self._rows: list[Sequence[Cell]] = []
        self._parquet: Any = None

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= _GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 (only this format needs it)
        import pyarrow.parquet as pq  # noqa: PLC0415 (only this format needs it)

        cells = list(zip(*self._rows, strict=True)) or [()] * len(self.columns)
        if self._parquet is None:
            self._kinds = [
                kind or _common_kind(column)
                for kind, column in zip(self._kinds, cells, strict=True)
            ]
            types = {str: pa.string(), float: pa.float64(), int: pa.int64()}
            self._schema = pa.schema(
                [
                    (name, types[cast(type, kind)])
                    for name, kind in zip(free_names((), self.columns), self._kinds, strict=True)
                ]
            )
            self._parquet = pq.ParquetWriter(pa.PythonFile(self._output, mode="w"), self._schema)
        arrays = [
            pa.array([_as_kind(cell, cast(type, kind)) for cell in column], type=field.type)
            for column, kind, field in zip(cells, self._kinds, self._schema, strict=True)
        ]
        self._parquet.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []
        self._output.flush()

    def _finish(self) -> None:
        if self._rows or self._parquet is None:
            self._write_group()
        self._parquet.close()


def _common_kind(cells: Sequence[Cell]) -> type:
    present = [cell for cell in cells if cell is not None]
    if not present or not all(isinstance(cell, int | float) for cell in present):
        return str
    return int if all(isinstance(cell, int) for cell in present) else float


def _as_kind(cell: Cell, kind: type) -> Cell:
    if cell is None:
        return None
    if kind is str:
        return _as_text(cell)
    if isinstance(cell, str):
        raise TypeError(f"text {cell!r} in a column of numbers")
    if kind is float:
        return _as_json(float(cell))
    return cell

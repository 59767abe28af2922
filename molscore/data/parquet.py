"""Parquet files as tables. pyarrow loads when used."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from molscore.data.cells import cell_text
from molscore.data.records import RawRecord, TableInfo, TableOptions
from molscore.data.rowsets import SAMPLE_RECORDS, RowSet, number_records
from molscore.data.streams import ByteSource, seekable
from molscore.errors import ConfigError, InputError

_BATCH_ROWS: Final = 1024


def open_parquet(source: ByteSource, options: TableOptions) -> RowSet:
    """Open a Parquet file; missing values become blank cells.

    A file from stdin is held in memory, since Parquet is read from its end.

    Raises:
        InputError: if it is damaged.
        ConfigError: if a header is ruled out.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 (only this format needs it)

    if options.header == "no":
        raise ConfigError("--header no does not go with parquet, whose columns have names")
    file = seekable(source)

    def close() -> None:
        file.close()
        source.close()

    try:
        parquet = pq.ParquetFile(file)
    except Exception as error:  # noqa: BLE001 - a damaged file fails in many ways
        file.close()
        raise InputError(
            f"{source.name} is not a Parquet file that can be read ({error})"
        ) from None
    columns = list(parquet.schema_arrow.names)
    rows = _rows(parquet, source.name)
    sample = list(islice(rows, SAMPLE_RECORDS))
    return RowSet(
        name=source.name,
        columns=columns,
        named=True,
        sample=[record.fields for record in sample],
        records=number_records(chain(sample, rows), len(columns), None),
        info=TableInfo(format="parquet", compression=source.compression),
        close=close,
    )


def _rows(parquet: Any, name: str) -> Iterator[RawRecord]:
    row = 0
    # Without threads of Arrow's own: one that still reads when the program ends aborts it.
    batches = parquet.iter_batches(batch_size=_BATCH_ROWS, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except Exception as error:  # noqa: BLE001 - as above
            raise InputError(f"{name}, after row {row}: damaged ({error})") from None
        if batch is None:
            return
        for cells in zip(*map(_values, batch.columns), strict=True):
            row += 1
            yield RawRecord(row, [cell_text(cell) for cell in cells])


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if str(column.type) not in {"float", "halffloat"}:
        return values
    # pyarrow widens them to doubles, and 0.1 would turn into 0.10000000149011612.
    narrow = np.float32 if str(column.type) == "float" else np.float16
    return [None if value is None else narrow(value) for value in values]

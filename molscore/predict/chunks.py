"""Where a stream of rows is cut: at absolute row numbers, whatever part of it is wanted.

The last bit of a prediction depends on the molecules it was computed with. Chunks are therefore
the same whether a table is read from its first row or from any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from typing import Final, TypeVar

from molscore.data.records import Record
from molscore.errors import ConfigError

CHUNK_ROWS: Final = 512

FIRST_ROWS: Final = 64
"""The first chunk is shorter, so that a reader of the output sees something at once."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of a table that are wanted.

    Attributes:
        skip: rows left out at the beginning.
        limit: most rows after those; None takes all.

    Raises:
        ConfigError: when one of them is negative.
    """

    skip: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("skip", self.skip), ("limit", self.limit)):
            if value is not None and value < 0:
                raise ConfigError(f"{name} must be 0 or more, got {value}")

    def holds_after(self, row: int) -> bool:
        """Whether row `row`, or one behind it, is wanted."""
        return self.limit is None or row < self.skip + self.limit

    def holds(self, row: int) -> bool:
        """Whether row `row` is wanted."""
        return row >= self.skip and self.holds_after(row)

    def part(self, first: int, n: int) -> slice:
        """Return which of the `n` rows from row `first` on are wanted."""
        end = n if self.limit is None else min(n, self.skip + self.limit - first)
        return slice(max(0, self.skip - first), max(0, end))

    def count(self, n: int | None) -> int | None:
        """Return how many of a table's `n` rows are wanted; None where that is not known."""
        if n is None:
            return self.limit
        return len(range(n)[self.part(0, n)])


ALL_ROWS: Final = RowRange()


def chunk_start(row: int, chunk_rows: int = CHUNK_ROWS) -> int:
    """Return the first row of the chunk that row `row` is in."""
    first = min(FIRST_ROWS, chunk_rows)
    return 0 if row < first else max(first, row // chunk_rows * chunk_rows)


def chunk_end(row: int, chunk_rows: int = CHUNK_ROWS) -> int:
    """Return the row behind the last of the chunk that row `row` is in."""
    first = min(FIRST_ROWS, chunk_rows)
    return first if row < first else (row // chunk_rows + 1) * chunk_rows


def cut(items: Iterator[T], row: int = 0, chunk_rows: int = CHUNK_ROWS) -> Iterator[list[T]]:
    """Cut rows into chunks.

    Args:
        items: one a row.
        row: number of the first.
        chunk_rows: every border but the first is a multiple of it.
    """
    while chunk := list(islice(items, chunk_end(row, chunk_rows) - row)):
        yield chunk
        row += len(chunk)


def cut_records(
    records: Iterator[Record], rows: RowRange, chunk_rows: int = CHUNK_ROWS
) -> Iterator[list[Record]]:
    """Cut the records of a table into the chunks that hold the rows wanted.

    The first and the last chunk may hold other rows too: without them the values of their
    neighbours would differ in the last bit.

    Args:
        records: of a table, from any chunk border on that is not behind the rows wanted.
        rows: those wanted.
        chunk_rows: as for `cut`.
    """
    if not rows.holds_after(rows.skip):
        return
    start = chunk_start(rows.skip, chunk_rows)
    records = dropwhile(lambda record: record.row < start, records)
    head = next(records, None)
    if head is None or not rows.holds_after(head.row):
        return
    for chunk in cut(chain([head], records), head.row, chunk_rows):
        yield chunk
        if not rows.holds_after(chunk[-1].row + 1):
            return

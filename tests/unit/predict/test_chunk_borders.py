"""Chunks: the same borders from whichever row a table is read."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molscore.data.records import Record
from molscore.errors import ConfigError
from molscore.predict.chunks import (
    CHUNK_ROWS,
    FIRST_ROWS,
    RowRange,
    chunk_end,
    chunk_start,
    cut,
    cut_records,
)


def records(n: int, start: int = 0):
    return (Record(row, row + 2, ["C"], None) for row in range(start, n))


def test_the_first_chunk_is_short_and_the_others_end_at_multiples() -> None:
    sizes = [len(chunk) for chunk in cut(iter(range(1500)))]
    assert sizes == [FIRST_ROWS, CHUNK_ROWS - FIRST_ROWS, CHUNK_ROWS, 1500 - 2 * CHUNK_ROWS]


@given(st.integers(0, 5000), st.integers(1, 700))
def test_a_row_lies_between_the_borders_of_its_chunk(row: int, chunk_rows: int) -> None:
    start, end = chunk_start(row, chunk_rows), chunk_end(row, chunk_rows)
    assert start <= row < end <= start + chunk_rows
    assert chunk_start(start, chunk_rows) == chunk_start(end - 1, chunk_rows) == start
    assert chunk_start(end, chunk_rows) == end


@given(st.integers(0, 90), st.integers(0, 120), st.none() | st.integers(0, 120))
def test_every_part_of_a_table_comes_in_the_chunks_of_the_whole(
    n: int, skip: int, limit: int | None
) -> None:
    whole = [[r.row for r in chunk] for chunk in cut(records(n), 0, 10)]
    rows = RowRange(skip, limit)
    wanted = []
    for chunk in cut_records(records(n), rows, 10):
        assert [r.row for r in chunk] in whole
        wanted += [r.row for r in chunk[rows.part(chunk[0].row, len(chunk))]]
    assert wanted == list(islice(range(n), skip, None if limit is None else skip + limit))


def test_no_more_is_read_than_the_chunk_of_the_last_row_wanted() -> None:
    left = records(100)
    assert len(list(cut_records(left, RowRange(25, 7), 10))) == 2
    assert next(left).row == 40
    assert list(cut_records(left, RowRange(50, 0), 10)) == []
    assert next(left).row == 41


def test_a_table_may_be_read_from_a_border_on() -> None:
    chunks = [[r.row for r in c] for c in cut_records(records(45, 20), RowRange(7), 10)]
    assert [(c[0], len(c)) for c in chunks] == [(20, 10), (30, 10), (40, 5)]


@pytest.mark.parametrize(("skip", "limit", "name"), [(-1, None, "skip"), (0, -1, "limit")])
def test_negative_numbers_are_refused(skip: int, limit: int | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be 0 or more, got -1"):
        RowRange(skip, limit)

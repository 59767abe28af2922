"""Folds: which rows an expert is blind to.

Every split deals whole *units*: rows that may not be parted. Rows of the same structure are
always one unit; scaffold and group splits join more rows into a unit. Units are put in an
order that depends on the seed and on their keys alone (a hash, not a random generator), so
the same table gives the same folds on every platform, with every numpy, and in any row order.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from molscore.data.records import TableOptions
from molscore.data.rowsets import read_rows
from molscore.data.values import parse_number
from molscore.errors import ConfigError, InputError

SPLIT_KINDS: Final = ("random", "scaffold", "group:COLUMN", "time:COLUMN")

Folds = NDArray[np.int64]


def parse_split(kind: str) -> tuple[str, str | None]:
    """Split `group:COLUMN` into its parts.

    Returns:
        The kind (`random`, `scaffold`, `group`, `time`) and the column, None where the kind
        takes none.

    Raises:
        ConfigError: on an unknown kind or a missing column.
    """
    name, colon, column = kind.partition(":")
    if name in {"random", "scaffold"} and not colon:
        return name, None
    if name in {"group", "time"} and column.strip():
        return name, column.strip()
    raise ConfigError(f"split {kind!r} is not one of {', '.join(SPLIT_KINDS)}")


def make_folds(
    kind: str,
    n_folds: int,
    seed: int,
    keys: Sequence[str],
    *,
    scaffolds: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    times: Sequence[str] | None = None,
) -> Folds:
    """Deal rows to folds.

    Fold k is the set of rows that expert k is blind to and is scored on. Sizes are as equal
    as whole units allow (largest unit first, each to the smallest fold so far).

    - `random`: a unit is one structure.
    - `scaffold`: a unit is one Bemis-Murcko scaffold. Molecules without rings have none; each
      of their structures is a unit of its own, so they spread over the folds instead of
      filling one.
    - `group:COLUMN`: a unit is one value of the column. A blank value groups nothing.
    - `time:COLUMN`: a unit is one point in time; folds are consecutive periods and every row
      of a later fold is later than every row of an earlier one (the seed plays no part). A
      structure measured more than once counts by its first time. An expert blind to fold k
      still sees the periods after k; only the last fold is a forecast.

    Where a structure occurs in two scaffolds or groups (a salt form, say), those become one
    unit: same structure, same fold, always.

    Args:
        kind: `random`, `scaffold`, `group:COLUMN` or `time:COLUMN`.
        n_folds: number of folds, at least 2.
        seed: any integer.
        keys: structure key of each row, length n.
        scaffolds: scaffold of each row, "" without rings; for `scaffold`.
        groups: group of each row; for `group`.
        times: time of each row, all numbers (years) or all ISO 8601 dates; for `time`.

    Returns:
        int64 [n], values 0..n_folds-1, no fold empty.

    Raises:
        ConfigError: on an unknown kind, fewer than 2 folds, or fewer units than folds.
        InputError: on a time that cannot be read.
    """
    name, _ = parse_split(kind)
    if n_folds < 2:
        raise ConfigError(f"a split needs at least 2 folds, got {n_folds}")
    if name == "time":
        return _time_folds(n_folds, keys, _required(times, "times", keys))
    labels: Sequence[str] = [""] * len(keys)
    if name == "scaffold":
        labels = _required(scaffolds, "scaffolds", keys)
    elif name == "group":
        labels = [group.strip() for group in _required(groups, "groups", keys)]
    units = _join(keys, labels)
    n_units = len(set(units))
    if n_units < n_folds:
        what = {
            "random": "structures",
            "scaffold": "scaffolds (those that share a structure count as one)",
            "group": "groups (those that share a structure count as one)",
        }[name]
        raise ConfigError(
            f"{n_folds} folds need at least {n_folds} different {what}; "
            f"these {len(keys)} rows hold {n_units}. Ask for fewer folds"
        )
    return _deal(units, keys, n_folds, seed)


def _required(values: Sequence[str] | None, name: str, keys: Sequence[str]) -> Sequence[str]:
    if values is None or len(values) != len(keys):
        got = "none" if values is None else str(len(values))
        raise ConfigError(f"this split needs {name}, one for each of {len(keys)} rows; got {got}")
    return values


def _join(keys: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Number the connected components of rows that share a key or a non-empty label."""
    parent = list(range(len(keys)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[str, str], int] = {}
    for i, (key, label) in enumerate(zip(keys, labels, strict=True)):
        ties = [("key", key)] + ([("label", label)] if label else [])
        for tie in ties:
            a, b = root(first.setdefault(tie, i)), root(i)
            parent[max(a, b)] = min(a, b)
    return [root(i) for i in range(len(keys))]


def _deal(units: Sequence[int], keys: Sequence[str], n_folds: int, seed: int) -> Folds:
    members: dict[int, list[int]] = {}
    for i, unit in enumerate(units):
        members.setdefault(unit, []).append(i)

    def rank(rows: list[int]) -> tuple[int, bytes]:
        # The unit's smallest key stands for it, so the order of the rows does not matter.
        key = min(keys[i] for i in rows)
        return -len(rows), blake2b(f"{seed}\n{key}".encode(), digest_size=16).digest()

    folds = np.empty(len(keys), dtype=np.int64)
    sizes = [0] * n_folds
    for rows in sorted(members.values(), key=rank):
        fold = sizes.index(min(sizes))
        folds[rows] = fold
        sizes[fold] += len(rows)
    return folds


def _time_folds(n_folds: int, keys: Sequence[str], times: Sequence[str]) -> Folds:
    moments = _parse_times(times)
    first: dict[str, float] = {}
    for key, moment in zip(keys, moments, strict=True):
        first[key] = min(moment, first.get(key, math.inf))
    row_time = np.array([first[key] for key in keys], dtype=np.float64)
    points, counts = np.unique(row_time, return_counts=True)
    if len(points) < n_folds:
        raise ConfigError(
            f"{n_folds} folds need at least {n_folds} different times; "
            f"these {len(keys)} rows hold {len(points)}. Ask for fewer folds"
        )
    # Cut between two points, as near to equal sizes as they allow, one point or more a fold.
    before = np.concatenate([[0], np.cumsum(counts)])
    cuts = [0]
    for k in range(1, n_folds):
        low, high = cuts[-1] + 1, len(points) - (n_folds - k)
        ideal = len(keys) * k / n_folds
        cuts.append(low + int(np.argmin(np.abs(before[low : high + 1] - ideal))))
    fold_of_point = np.searchsorted(np.array(cuts), np.arange(len(points)), side="right") - 1
    return fold_of_point[np.searchsorted(points, row_time)].astype(np.int64)


def _parse_times(times: Sequence[str]) -> list[float]:
    """Read times, all as the first one: as numbers, or as ISO dates in seconds since 1970."""
    as_numbers = bool(times) and isinstance(parse_number(times[0]), float)
    moments = []
    for entry, text in enumerate(times, 1):
        moment = parse_number(text) if as_numbers else _iso_seconds(text.strip())
        if moment is None or isinstance(moment, str) or math.isnan(moment):
            raise InputError(
                f"cannot read the time {text!r} (entry {entry} of {len(times)}): "
                "expected a number (a year) in every row, or an ISO date (2024-03-31) in every row"
            )
        moments.append(moment)
    return moments


def _iso_seconds(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    # A date without a zone is taken as UTC: order is all that matters, and it must not
    # depend on where the program runs.
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def read_folds_file(path: str | Path, n_rows: int) -> Folds:
    """Read the folds a user gives.

    Args:
        path: a table with the columns `row` (0-based record number of the training table) and
            `fold` (an integer, 0 or more), every row of the table exactly once, in any order.
        n_rows: number of records of the training table.

    Returns:
        int64 [n_rows]. Fold numbers are closed up in order, so 1..5 becomes 0..4.

    Raises:
        InputError: naming the line, on anything else.
    """
    names, records = read_rows(path, TableOptions(header="yes"))
    wanted = [name.strip().lower() for name in names]
    if wanted.count("row") != 1 or wanted.count("fold") != 1:
        raise InputError(f"{path}: a folds file has columns row,fold; found {', '.join(names)}")
    at_row, at_fold = wanted.index("row"), wanted.index("fold")
    folds = np.full(n_rows, -1, dtype=np.int64)
    for record in records:
        where = f"{path}, line {record.line}"
        if record.problem:
            raise InputError(f"{where}: {record.problem}")
        row = _whole_number(record.fields[at_row], f"{where}: row")
        fold = _whole_number(record.fields[at_fold], f"{where}: fold")
        if row >= n_rows:
            raise InputError(
                f"{where}: row {row} is beyond the table, which has {n_rows} records "
                "(rows count from 0, without the header)"
            )
        if folds[row] >= 0:
            raise InputError(f"{where}: row {row} is given a second time")
        folds[row] = fold
    missing = np.flatnonzero(folds < 0)
    if len(missing):
        raise InputError(
            f"{path}: {len(missing)} of {n_rows} rows have no fold, the first is row {missing[0]} "
            "(rows count from 0, without the header)"
        )
    labels, closed_up = np.unique(folds, return_inverse=True)
    if len(labels) < 2:
        raise InputError(f"{path}: all rows are in one fold; at least 2 are needed")
    return closed_up.astype(np.int64)


def _whole_number(text: str, what: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise InputError(f"{what} is {text!r}, expected a whole number, 0 or more")
    return int(text)


def count_crossing(keys: Iterable[str], folds: Iterable[int]) -> int:
    """Count the structures that stand in more than one fold.

    Args:
        keys: structure key of each row, length n.
        folds: fold of each row, length n.

    Returns:
        The number of distinct keys with rows in two folds or more.
    """
    seen: dict[str, int] = {}
    crossing = set()
    for key, fold in zip(keys, folds, strict=True):
        if seen.setdefault(key, int(fold)) != fold:
            crossing.add(key)
    return len(crossing)

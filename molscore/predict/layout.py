"""The columns of a prediction table: what the input had, then ours."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from molscore.data.names import free_names
from molscore.data.writers import Cell
from molscore.predict.core import ChunkResult
from molscore.trust.judge import DOMAIN_COLUMNS, NEIGHBOUR

_NUMBER: Final = re.compile(r"_\d+$")  # what `free_names` appends
_PREDICTION: Final = "pred_"
_ENDINGS: Final = ("", "_sd", "_lo", "_hi")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of a row.

    Attributes:
        targets: names.
        intervals: one flag a target, whether it has an interval; empty for none at all.
        extras: names of further columns.
        numeric: one flag each, whether they hold numbers.
    """

    targets: tuple[str, ...]
    intervals: tuple[bool, ...] = ()
    extras: tuple[str, ...] = ()
    numeric: tuple[bool, ...] = ()

    @property
    def has_interval(self) -> tuple[bool, ...]:
        """One flag a target."""
        return self.intervals or (False,) * len(self.targets)

    @property
    def predictions(self) -> list[str]:
        """Names of the columns of all targets."""
        return [
            f"{_PREDICTION}{name}{ending}"
            for name, has_interval in zip(self.targets, self.has_interval, strict=True)
            for ending in _ENDINGS[: 4 if has_interval else 2]
        ]


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """How an output row is put together.

    Attributes:
        columns: all names, in order.
        numbers: those of ours that hold numbers.
        kept: positions of the input columns that pass through.
        replaced: input columns dropped because an earlier prediction wrote them.
        renamed: our name -> the name used, where the input has a column of that name.
    """

    columns: list[str]
    numbers: list[str]
    kept: list[int]
    replaced: list[str]
    renamed: dict[str, str]


def output_layout(columns: Sequence[str], answer: Answer) -> OutputLayout:
    """Plan the output of a table.

    Ours are `pred_TARGET`, `pred_TARGET_sd` and, with an interval, `pred_TARGET_lo` and
    `pred_TARGET_hi` for each target, then further columns of the answer, then `status` and
    `error`. Columns that an earlier prediction of the same targets appended are replaced; they
    are recognised as a block (`pred_` columns, further ones, then status, error), so a user's
    own `status` column stays, and ours is then called `status_2`.

    Args:
        columns: names of the input table.
        answer: what is predicted.
    """
    predictions = answer.predictions
    old = _earlier_block(columns, [f"{_PREDICTION}{name}" for name in answer.targets])
    kept = [i for i in range(len(columns)) if i not in old]
    wanted = [*predictions, *answer.extras, "status", "error"]
    names = free_names({columns[i] for i in kept}, wanted)
    flags = (*[True] * len(predictions), *answer.numeric, False, False)
    numbers = [name for name, is_number in zip(names, flags, strict=True) if is_number]
    return OutputLayout(
        columns=[*(columns[i] for i in kept), *names],
        numbers=numbers,
        kept=kept,
        replaced=[columns[i] for i in sorted(old)],
        renamed={old: new for old, new in zip(wanted, names, strict=True) if old != new},
    )


def answers(result: ChunkResult, answer: Answer) -> list[list[Cell]]:
    """Return the cells of ours for each row; None for a number that is not there."""
    columns = []
    for t, has_interval in enumerate(answer.has_interval):
        columns += [result.values[:, t], result.sd[:, t]]
        columns += [result.lower[:, t], result.upper[:, t]] if has_interval else []
    numbers = np.stack(columns, axis=1).tolist()
    return [
        [*(None if math.isnan(x) else x for x in row), *extras, status, error]
        for row, extras, status, error in zip(
            numbers, result.extras, result.status, result.error, strict=True
        )
    ]


def _earlier_block(columns: Sequence[str], values: Sequence[str]) -> set[int]:
    """Return the positions of the columns an earlier prediction wrote and this one replaces.

    Args:
        columns: of the table.
        values: names of the columns of our predicted values.
    """
    plain = [_NUMBER.sub("", name) for name in columns]
    predictions = [value + ending for value in values for ending in _ENDINGS]
    for status in range(2, len(columns) - 1):
        if plain[status : status + 2] != ["status", "error"]:
            continue
        extras = status
        while extras >= 2 and columns[extras - 1].startswith((*DOMAIN_COLUMNS, NEIGHBOUR)):
            extras -= 1
        start = extras
        while n := _group_size(columns[:start]):
            start -= n
        if start < extras:
            # `pred_y_2` is a numbered `pred_y` only beside another `pred_y`.
            numbered = {name for name in predictions if name in columns}
            same = {
                i for i in range(start, extras) if columns[i] in predictions or plain[i] in numbered
            }
            # What was said of other targets stays theirs.
            ours = len(same) == extras - start
            return same | set(range(extras if ours else status, status + 2))
    return set()


def _group_size(columns: Sequence[str]) -> int:
    """Return how many of the last columns are the value, spread and interval of one target."""
    for n in (4, 2):
        value, *rest = columns[-n:] if len(columns) >= n else ("",)
        if value.startswith(_PREDICTION):
            names = {value, _NUMBER.sub("", value)}
            if all(
                {f"{name}{ending}" for name in names} & {column, _NUMBER.sub("", column)}
                for column, ending in zip(rest, _ENDINGS[1:n], strict=True)
            ):
                return n
    return 0

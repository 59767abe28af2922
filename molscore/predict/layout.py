"""The columns of a prediction table: what the input had, then ours."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from molscore.data.targets import Target

_STATUS: Final = re.compile(r"status(_\d+)?")
_ERROR: Final = re.compile(r"error(_\d+)?")
_PREDICTION: Final = "pred_"


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


def output_layout(columns: Sequence[str], targets: Sequence[Target]) -> OutputLayout:
    """Plan the output of a table.

    Ours are `pred_TARGET` and `pred_TARGET_sd` for each target, then `status` and `error`.
    Columns that an earlier prediction of the same targets appended are replaced; they are
    recognised as a block (`pred_` columns, then status, error), so a user's own `status`
    column stays, and ours is then called `status_2`.

    Args:
        columns: names of the input table.
        targets: of the model.
    """
    predictions = [name for t in targets for name in (f"pred_{t.name}", f"pred_{t.name}_sd")]
    old = _earlier_block(columns, predictions)
    kept = [i for i in range(len(columns)) if i not in old]
    taken = {columns[i] for i in kept}
    names: list[str] = []
    renamed = {}
    for name in (*predictions, "status", "error"):
        free = _free_name(name, taken)
        if free != name:
            renamed[name] = free
        taken.add(free)
        names.append(free)
    return OutputLayout(
        columns=[*(columns[i] for i in kept), *names],
        numbers=names[: len(predictions)],
        kept=kept,
        replaced=[columns[i] for i in sorted(old)],
        renamed=renamed,
    )


def _earlier_block(columns: Sequence[str], predictions: Sequence[str]) -> set[int]:
    """Return the positions of the columns an earlier prediction wrote and this one replaces."""
    for end in range(len(columns) - 1, 0, -1):
        if not (_STATUS.fullmatch(columns[end - 1]) and _ERROR.fullmatch(columns[end])):
            continue
        start = end - 1
        while start > 0 and columns[start - 1].startswith(_PREDICTION):
            start -= 1
        if start < end - 1:
            ours = re.compile("|".join(rf"{re.escape(name)}(_\d+)?" for name in predictions))
            same = {i for i in range(start, end - 1) if ours.fullmatch(columns[i])}
            return same | {end - 1, end}
    return set()


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"

"""The columns of a prediction table: what the input had, then ours."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from molscore.data.names import free_names
from molscore.data.targets import Target

_NUMBER: Final = re.compile(r"_\d+$")  # what `free_names` appends
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
    wanted = [*predictions, "status", "error"]
    names = free_names({columns[i] for i in kept}, wanted)
    return OutputLayout(
        columns=[*(columns[i] for i in kept), *names],
        numbers=names[: len(predictions)],
        kept=kept,
        replaced=[columns[i] for i in sorted(old)],
        renamed={old: new for old, new in zip(wanted, names, strict=True) if old != new},
    )


def _earlier_block(columns: Sequence[str], predictions: Sequence[str]) -> set[int]:
    """Return the positions of the columns an earlier prediction wrote and this one replaces."""
    plain = [_NUMBER.sub("", name) for name in columns]
    for status in range(2, len(columns) - 1):
        if plain[status : status + 2] != ["status", "error"]:
            continue
        start = status
        while start >= 2 and _is_pair(columns[start - 2], columns[start - 1]):
            start -= 2
        if start < status:
            # `pred_y_2` is a numbered `pred_y` only beside another `pred_y`.
            numbered = {name for name in predictions if name in columns}
            same = {
                i for i in range(start, status) if columns[i] in predictions or plain[i] in numbered
            }
            return same | {status, status + 1}
    return set()


def _is_pair(value: str, spread: str) -> bool:
    """Whether two neighbours are the value and the spread of one target."""
    if not value.startswith(_PREDICTION):
        return False
    names = {value, _NUMBER.sub("", value)}
    return bool({f"{name}_sd" for name in names} & {spread, _NUMBER.sub("", spread)})

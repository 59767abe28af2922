"""What a column becomes as a target: numbers or classes, with what the user says of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from molscore.data.classes import detect_classes, require_classes
from molscore.data.endpoints import Target, Transform
from molscore.data.values import Decimal
from molscore.errors import InputError


@dataclass(frozen=True)
class TargetSettings:
    """What holds for targets given by name; see `targets.read_labelled`.

    Attributes:
        table: what to call the table in a message.
        kind: `auto` looks at the cells.
        transform: of numbers; classes have none.
        unit: of the values, for people to read.
        note: endpoint note.
    """

    table: str
    kind: Literal["auto", "regression", "classification"]
    transform: Transform
    unit: str
    note: str

    def make(self, name: str, texts: Sequence[str], decimal: Decimal) -> Target:
        """Return the target of a column.

        Args:
            name: of the column.
            texts: its cells.
            decimal: decimal mark of its numbers.

        Raises:
            InputError: if it is to hold classes and which they are is not clear.
        """
        classes = self._classes(name, texts, decimal)
        if classes is None:
            return Target(name=name, unit=self.unit, transform=self.transform, note=self.note)
        return Target(
            name=name, kind="classification", unit=self.unit, note=self.note, classes=classes
        )

    def _classes(self, name: str, texts: Sequence[str], decimal: Decimal) -> tuple[str, str] | None:
        if self.kind == "regression":
            return None
        if self.kind == "auto":
            return detect_classes(texts, decimal)
        classes = require_classes(texts, decimal)
        if isinstance(classes, str):
            raise InputError(
                f"{self.table}: target {name!r} cannot be used for classification: {classes}; "
                "write 0 and 1 (1 is the positive class) instead"
            )
        return classes


def announce_targets(made: Sequence[Target], targets: Sequence[str | Target] | None) -> list[str]:
    """Say what was chosen: the target, if none was named, and what it is taken for.

    Args:
        made: the targets made of columns.
        targets: what the user asked for, in the same order; targets of a model are not told.

    Returns:
        One sentence each.
    """
    if not targets:
        return [f"the target is {_describe(made[0])}; --target names another"]
    return [
        f"the target is {_describe(target)}"
        for target, named in zip(made, targets, strict=True)
        if not isinstance(named, Target)
    ]


def _describe(target: Target) -> str:
    positive = f", {target.classes[1]} = positive" if target.classes else ""
    return f"{target.name!r} ({target.kind}{positive})"

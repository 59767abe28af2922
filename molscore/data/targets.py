"""Labelled tables: molecules and what was measured of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from molscore.data.classes import MOSTLY, parse_class
from molscore.data.columns import find_column
from molscore.data.endpoints import Target, TargetKind, Transform, Values
from molscore.data.names import free_names
from molscore.data.records import Record, TableInfo, TableOptions, TableReader
from molscore.data.tables import open_frame, open_table
from molscore.data.target_columns import choose_targets
from molscore.data.target_settings import TargetSettings, announce_targets
from molscore.data.values import Decimal, detect_decimals, parse_number
from molscore.errors import ConfigError, InputError

__all__ = [
    "LabelledTable",
    "Rejected",
    "Target",
    "TargetKind",
    "Transform",
    "Values",
    "read_labelled",
]

_DEFAULT: Final = TableOptions()
_UNDEFINED: Final = " is not defined for it"


class Rejected(NamedTuple):
    """A value that was left out.

    Attributes:
        row: record number, from 0.
        line: line of the file, from 1.
        column: its name; "" where the whole record was left out.
        text: what stands there.
        reason: in words.
    """

    row: int
    line: int
    column: str
    text: str
    reason: str


@dataclass(frozen=True)
class LabelledTable:
    """A whole table of molecules and target values, one entry for each record.

    Records that cannot be used keep their place, so that row numbers stay those of the file:
    a ragged record has SMILES "" and no value.

    Attributes:
        name: of the table, for messages.
        columns: column names as in the file.
        smiles: [n], blanks around them removed.
        lines: [n], line of the file, from 1.
        targets: [n_targets].
        values: float64 [n, n_targets], table units, or 0 and 1 for classes; NaN is a gap.
        extra: the cells of every column, by name (repeated names numbered: `y`, `y_2`).
        rejected: values and records that were left out, in order of rows.
        info: how the table was read.
        notes: choices worth telling the user, one sentence each.
        sha256: of the file's bytes; None for stdin and data frames.
    """

    name: str
    columns: list[str]
    smiles: list[str]
    lines: list[int]
    targets: tuple[Target, ...]
    values: Values
    extra: dict[str, list[str]]
    rejected: list[Rejected]
    info: TableInfo
    notes: tuple[str, ...] = ()
    sha256: str | None = None

    def __len__(self) -> int:
        return len(self.smiles)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """[n], whether a record has a value for at least one target."""
        return np.asarray(~np.isnan(self.values).all(axis=1))

    @property
    def malformed(self) -> frozenset[int]:
        """Rows left out whole, each with its reason in `rejected`."""
        return frozenset(item.row for item in self.rejected if not item.column)

    def column(self, name: str, *, flag: str = "column") -> list[str]:
        """Return the cells of a column, found as `columns.find_column` does.

        Args:
            name: the column's name, as a user gives it.
            flag: the option that gave it, for a message.
        """
        names = list(self.extra)
        return self.extra[names[find_column(self.columns, name, flag=flag, table=self.name)]]


def read_labelled(
    path: Any,
    options: TableOptions = _DEFAULT,
    *,
    targets: Sequence[str | Target] | None = None,
    kind: Literal["auto", "regression", "classification"] = "auto",
    transform: Transform = "none",
    unit: str = "",
    note: str = "",
    flag: str | None = None,
) -> LabelledTable:
    """Read a table to train or evaluate on, whole.

    Args:
        path: a file, "-" for stdin, or a pandas DataFrame.
        options: see `TableOptions`.
        targets: names of the target columns, or targets of a model, whose kind, unit and
            transform then hold; None to choose (`target_columns.choose_targets`).
        kind: of targets given by name; `auto` takes a column of two classes
            (`classes.detect_classes`) as classification.
        transform: of regression targets given by name; classes have none.
        unit: of targets given by name.
        note: of targets given by name.
        flag: what names the targets, for messages.

    Raises:
        ConfigError: if the target is ambiguous, or options do not fit.
        InputError: if the table cannot be read, has no record, a target has no value, or it is
            to hold classes and which they are is not clear.
    """
    is_path = isinstance(path, str | Path)
    with open_table(path, options) if is_path else open_frame(path, options) as reader:
        records = list(reader)
    if not records:
        raise InputError(f"{reader.name}: there is a header and no record below it")
    usable = [record for record in records if not record.problem]
    if not usable:
        raise InputError(
            f"{reader.name}: no record can be used; the first, in line {records[0].line}: "
            f"{records[0].problem}"
        )
    cells = _columns_of(usable, len(reader.columns))
    requested = [t.name if isinstance(t, Target) else t for t in targets] if targets else None
    chosen = choose_targets(
        reader.columns,
        cells,
        reader.smiles_index,
        requested,
        classes=kind == "classification",
        table=reader.name,
        flag=flag
        or ("the model's target" if targets and isinstance(targets[0], Target) else "--target"),
    )
    cells = [cells[index] for index in chosen]
    decimals = _decimals(cells, options)
    settings = TargetSettings(reader.name, kind, transform, unit, note)
    made = [
        settings.make(reader.columns[index].strip() or f"column_{index + 1}", texts, decimal)
        for index, texts, decimal in zip(chosen, cells, decimals, strict=True)
    ]
    notes = list(reader.info.notes) + announce_targets(made, targets)
    made = [t if isinstance(t, Target) else made[k] for k, t in enumerate(targets or made)]
    _check_transform(reader.name, transform, made)
    values, rejected = _read_values(
        usable, len(records), made, cells, decimals, given=options.decimal != "auto"
    )
    mark = reader.info.separator or " "
    rejected += [
        Rejected(record.row, record.line, "", mark.join(record.fields).strip(), record.problem)
        for record in records
        if record.problem
    ]
    rejected.sort(key=lambda item: item.row)
    for k, target in enumerate(made):
        if np.isnan(values[:, k]).all():
            raise _no_values(reader, target, rejected)
        if transform != "none":
            _check_defined(reader.name, target, values[:, k], rejected)
        if kind == "auto" and target.kind == "regression":
            notes += _doubt(target.name, values[:, k])
    all_cells = _columns_of(records, len(reader.columns))
    return LabelledTable(
        name=reader.name,
        columns=reader.columns,
        smiles=[
            "" if record.problem else record.fields[reader.smiles_index].strip()
            for record in records
        ],
        lines=[record.line for record in records],
        targets=tuple(made),
        values=values,
        extra=dict(zip(free_names((), reader.columns), all_cells, strict=True)),
        rejected=rejected,
        info=reader.info,
        notes=tuple(notes),
        sha256=_sha256(path) if is_path and str(path) != "-" else None,
    )


def _decimals(cells: Sequence[Sequence[str]], options: TableOptions) -> list[Decimal]:
    if options.decimal == "auto":
        return detect_decimals(cells)
    return [options.decimal] * len(cells)


def _columns_of(records: Sequence[Record], n_columns: int) -> list[list[str]]:
    return [[record.fields[i] for record in records] for i in range(n_columns)]


def _check_transform(table: str, transform: Transform, made: Sequence[Target]) -> None:
    if transform != "none" and all(target.kind == "classification" for target in made):
        raise ConfigError(
            f"{table}: --transform {transform} goes with numbers, and {made[0].name!r} holds the "
            f"classes {' and '.join(made[0].classes)}; --task regression takes them as numbers"
        )


def _read_values(
    usable: Sequence[Record],
    n_records: int,
    made: Sequence[Target],
    cells: Sequence[Sequence[str]],
    decimals: Sequence[Decimal],
    *,
    given: bool,
) -> tuple[Values, list[Rejected]]:
    """Read the cells of every target; `cells` holds those of the usable records."""
    values = np.full((n_records, len(made)), np.nan)
    rows = [record.row for record in usable]
    rejected: list[Rejected] = []
    for k, target in enumerate(made):
        values[rows, k], problems = _parse_column(target, cells[k], decimals[k], given)
        rejected += [
            Rejected(usable[i].row, usable[i].line, target.name, cells[k][i].strip(), reason)
            for i, reason in problems
        ]
    return values, rejected


def _parse_column(
    target: Target, texts: Sequence[str], decimal: Decimal, given: bool
) -> tuple[Values, list[tuple[int, str]]]:
    """Read the cells of a target; give the values and the places and reasons of bad ones."""
    values = np.full(len(texts), np.nan)
    problems = []
    for i, text in enumerate(texts):
        if target.kind == "classification":
            value = parse_class(text, (target.classes[0], target.classes[1]))
        else:
            value = parse_number(text, decimal, given=given)
        if isinstance(value, str):
            problems.append((i, value))
        else:
            values[i] = value
    undefined = np.flatnonzero(~np.isnan(values) & np.isnan(target.forward(values)))
    problems += [(int(i), target.transform + _UNDEFINED) for i in undefined]
    values[undefined] = np.nan
    return values, problems


def _check_defined(
    table: str, target: Target, values: Values, rejected: Sequence[Rejected]
) -> None:
    """Refuse a transform that leaves most labels out."""
    reason = target.transform + _UNDEFINED
    left_out = [item for item in rejected if item.column == target.name and item.reason == reason]
    n = len(left_out) + int((~np.isnan(values)).sum())
    if len(left_out) > 0.5 * n:
        raise InputError(
            f"{table}: {target.transform} is not defined for {len(left_out)} of {n} values of "
            f"{target.name!r}, the first {left_out[0].text!r} in line {left_out[0].line}; if the "
            "column is transformed already, leave --transform out"
        )


def _doubt(name: str, values: Values) -> list[str]:
    """Say when a column that is taken as numbers is almost one of two classes."""
    seen = values[~np.isnan(values)]
    n_classes = int(np.isin(seen, (0.0, 1.0)).sum())
    if len(np.unique(seen)) < 3 or n_classes < MOSTLY * len(seen):
        return []
    return [
        f"{n_classes} of {len(seen)} values of {name!r} are 0 or 1: if they are classes, "
        "--task classification learns them and leaves the others out"
    ]


def _no_values(reader: TableReader, target: Target, rejected: Sequence[Rejected]) -> InputError:
    mine = [item for item in rejected if item.column in {target.name, ""}]
    first = ""
    if mine:
        first = f"; the first is {mine[0].text[:60]!r} in line {mine[0].line}: {mine[0].reason}"
    return InputError(
        f"{reader.name}: no value of target {target.name!r} can be used for {target.kind}{first}"
    )


def _sha256(path: str | Path) -> str | None:
    if not Path(path).is_file():
        return None
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

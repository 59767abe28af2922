"""Reading target cells: numbers, gaps, and everything that is neither.

Nothing is guessed: a qualified value (`<0.1`), a range, a unit or a thousands separator makes
a cell unreadable, with the reason. Only the blanks around a number are ignored.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

GAPS: Final = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_COMMA_NUMBER: Final = re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")
_GROUPED: Final = re.compile(r"[+-]?[0-9]{1,3}([., '\u00a0\u2009\u202f][0-9]{3})+([.,][0-9]+)?")
_QUALIFIED: Final = re.compile(r"(<=?|>=?|[≤≥=~≈±])")

Decimal = Literal[".", ","]


def is_gap(text: str) -> bool:
    """Whether a cell says that there is no value: blank, NA, N/A, NaN, null, None, #N/A."""
    return text.strip().casefold() in GAPS


def parse_number(text: str, decimal: Decimal = ".", *, given: bool = False) -> float | str:
    """Read one cell as a number.

    Args:
        text: the cell.
        decimal: decimal mark; with `,` a point is refused, since it may group thousands.
        given: whether the user gave the decimal mark, so that the other one can only group.

    Returns:
        The number, NaN for a gap, or the reason in words why the cell cannot be read.
    """
    cell = _plain_minus(text)
    if cell.casefold() in GAPS:
        return math.nan
    pattern = _NUMBER if decimal == "." else _COMMA_NUMBER
    if pattern.fullmatch(cell):
        number = float(cell.replace(",", "."))
        return number if math.isfinite(number) else "not a finite number"
    return _why_unreadable(cell, decimal, given)


def _why_unreadable(cell: str, decimal: Decimal, given: bool) -> str:
    if _QUALIFIED.match(cell):
        return "qualified value (the sign is not dropped)"
    if cell.casefold().lstrip("+-") in {"inf", "infinity"}:
        return "not a finite number"
    if given and _GROUPED.fullmatch(cell):
        return "a thousands separator; write the number without it"
    if (_COMMA_NUMBER if decimal == "." else _NUMBER).fullmatch(cell):
        return _why_other_mark(decimal, given)
    return "thousands separators" if _GROUPED.fullmatch(cell) else "not a number"


def _why_other_mark(decimal: Decimal, given: bool) -> str:
    if decimal == ",":
        return "a point in a table with decimal commas"
    if given:
        return "a comma in a table with decimal points"
    return "a decimal comma or a thousands separator; --decimal says which decimal mark holds"


def detect_decimals(columns: Sequence[Sequence[str]]) -> list[Decimal]:
    """Find the decimal mark of each of a table's columns of numbers.

    A number with a comma that cannot group thousands (`0,5`, `-1,25`, `12,3456`) in a column
    without decimal points proves that the table has decimal commas; they then hold in every
    column without decimal points. Where every comma might group thousands (`1,234`) nothing
    is proved, and those cells stay unreadable until the user gives the decimal mark.

    Args:
        columns: the cells of each column.

    Returns:
        One decimal mark a column.
    """
    has_point = [
        any("." in cell and _NUMBER.fullmatch(_plain_minus(cell)) for cell in cells)
        for cells in columns
    ]
    proved = any(
        _COMMA_NUMBER.fullmatch(cell) and not _THOUSANDS.fullmatch(cell)
        for cells, point in zip(columns, has_point, strict=True)
        if not point
        for cell in map(_plain_minus, cells)
        if "," in cell
    )
    return ["," if proved and not point else "." for point in has_point]


def _plain_minus(text: str) -> str:
    # U+2212 is what typeset tables use for a minus; it can mean nothing else.
    return text.strip().replace("\u2212", "-")


def is_number_like(text: str) -> bool:
    """Whether a cell is a number, with a sign of qualification or either decimal mark perhaps."""
    cell = _QUALIFIED.sub("", _plain_minus(text), count=1).strip()
    return bool(_NUMBER.fullmatch(cell) or _COMMA_NUMBER.fullmatch(cell))


def is_integer_like(text: str) -> bool:
    """Whether a cell is a whole number."""
    return bool(_INTEGER.fullmatch(text.strip()))

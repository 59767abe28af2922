"""Cells of typed tables as text."""

from datetime import date, datetime, time
from typing import Any


def cell_text(value: Any) -> str:
    """Write a cell of a typed table as text: shortest exact numbers, ISO dates, "" for none.

    Args:
        value: a Python, numpy, pandas or openpyxl scalar, or a list.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a numpy scalar
    if isinstance(value, str):
        return value
    # NaN and pandas' NaT are the values that differ from themselves.
    if value is None or str(value) == "<NA>" or value != value:  # noqa: PLR0124
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)

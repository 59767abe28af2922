"""Cells of typed tables as text."""

import math
from datetime import date, datetime, time
from typing import Any


def cell_text(value: Any) -> str:
    """Write a cell of a typed table as text: shortest exact numbers, ISO dates, "" for none.

    Args:
        value: a Python, numpy, pandas or openpyxl scalar, or a list.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime | date | time):
        # pandas' NaT is a datetime that differs from itself.
        return value.isoformat() if value == value else ""  # noqa: PLR0124
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    text = str(value)
    return "" if text in {"<NA>", "NaT"} else text

"""Cells of typed tables as text."""

import contextlib
from datetime import date, datetime, time
from typing import Any

import numpy as np


def cell_text(value: Any) -> str:
    """Write a cell of a typed table as text: shortest exact numbers, ISO dates, "" for none.

    Bytes are text in UTF-8, as older writers of Parquet left it; others are shown as Python
    writes them.

    Args:
        value: a Python, numpy, pandas or openpyxl scalar, or a list.
    """
    if isinstance(value, np.float32 | np.float16):
        value = float(str(value))  # not the digits that a double would need
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a numpy scalar
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            value = value.decode()
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

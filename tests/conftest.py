"""Where the tests find data that the project does not ship."""

from pathlib import Path
from typing import Final

import pytest

SHARED_DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Benchmark tables beside the project (esol.csv, aqsoldb.csv, ...); may be absent."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark tables; skips the test where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no benchmark tables at {SHARED_DATA}")
    return SHARED_DATA

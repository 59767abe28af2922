"""Data that the project does not ship, and limits on time."""

import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

# A busy machine is no fault of the code.
settings.register_profile("molscore", deadline=None)
settings.load_profile("molscore")

# Started in the background by a shell, pytest ignores Ctrl-C, and so would every process a test
# starts and interrupts. A handler, unlike "ignore", is not handed down.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Benchmark tables beside the project (esol.csv, aqsoldb.csv, ...); may be absent."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark tables; skips the test where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no benchmark tables at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture
def process_seconds():
    """A context that fails when its body takes more processor seconds than given."""

    @contextmanager
    def limit(seconds):
        start = time.process_time()
        yield
        spent = time.process_time() - start
        assert spent < seconds, f"took {spent:.2f} s"

    return limit

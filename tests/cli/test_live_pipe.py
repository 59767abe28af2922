"""Rows that come slowly through a pipe are answered while it is open."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import wait_for

from molscore.data.prefixed import HEAD_LINES


@pytest.mark.parametrize("workers", ["1", "2"])
def test_chunks_come_out_while_the_pipe_is_open(
    start: Callable[..., "subprocess.Popen[bytes]"], model: Path, workers: str
) -> None:
    process = start(
        *("predict", "-", "--model", model, "--workers", workers, "--quiet"),
        stdin=subprocess.PIPE,
    )
    lines: list[bytes] = []
    assert process.stdin is not None
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    sent = 0
    for until, answered in ((HEAD_LINES + 1, 64), (513, 512), (1025, 1024), (3000, 2048)):
        process.stdin.write(b"CCO\n" * (until - sent))
        process.stdin.flush()
        sent = until
        wait_for(lambda answered=answered: len(lines) > answered)
    process.stdin.close()
    assert process.wait(60) == 0
    reader.join()
    assert len(lines) == 3001

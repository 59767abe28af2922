"""molscore in this process and beside it, and models to run it with."""

import contextlib
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import (
    MOLSCORE,
    TRAINING_TABLE,
    Result,
    run_process,
    write_model,
    write_two_target_model,
)

from molscore.cli import logs
from molscore.cli.main import main


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Result]]:
    """Run molscore in this process, which saves the start-up."""
    logger = logging.getLogger("molscore")
    before = (logger.handlers, logger.propagate, logger.level)

    def run(*arguments: str | Path) -> Result:
        logs.state.__init__()  # type: ignore[misc] # as in a fresh process
        capfd.readouterr()
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    yield run
    logger.handlers, logger.propagate, logger.level = before


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two experts for the target `y`."""
    return write_model(tmp_path_factory.mktemp("model") / "hand.molscore")


@pytest.fixture(scope="session")
def two_targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a value `y` and a class `toxic`."""
    return write_two_target_model(tmp_path_factory.mktemp("two") / "two.molscore")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `table.csv`, `tiny.molscore` and `tiny-run`, really trained."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "table.csv").write_text(TRAINING_TABLE)
    done = run_process(
        *("train", "table.csv", "--target", "logS", "--output", "tiny.molscore"),
        *("--width", "16", "--folds", "2", "--epochs", "2", "--unit", "log10 mol/L"),
        *("--note", "made up", "--seed", "3", "--workers", "1"),
        cwd=folder,
    )
    assert done.code == 0, done.err
    assert done.out == ""
    (folder / "log.txt").write_text(done.err)
    return folder


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start molscore; what still runs when the test is over, is ended."""
    with contextlib.ExitStack() as stack:

        def run(*arguments: str | Path, **options: Any) -> "subprocess.Popen[bytes]":
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
            process = subprocess.Popen([MOLSCORE, *map(str, arguments)], **pipes)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield run

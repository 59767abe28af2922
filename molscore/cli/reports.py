"""What a command says on stderr besides its log, and the exit code that follows from it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from molscore.cli import logs
from molscore.errors import InputError

if TYPE_CHECKING:
    from molscore.predict.stream import Summary
    from molscore.train.job import TrainResult


def announce_terminal(source: str) -> None:
    """Say so when the input is a terminal: it would look like a command that hangs."""
    if source == "-" and sys.stdin is not None and sys.stdin.isatty():
        logs.write_line("reading SMILES from the terminal, one a line; end with Ctrl-D")


def close_summary(summary: "Summary", *, verb: str, strict: bool) -> int:
    """Write the failed rows and the closing line.

    Args:
        summary: what was read and what failed.
        verb: what happened to the good rows, such as "predicted".
        strict: whether a failed row fails the command.

    Returns:
        The exit code: 3 under `strict` when a row failed, else 0.
    """
    for failure in summary.failures:
        said = [f"line {failure.line}", failure.smiles.strip(), failure.status, failure.reason]
        logs.write_line(": ".join(filter(None, said)))
    more = summary.n_failed - len(summary.failures)
    if more:
        logs.write_line(f"and {more:,} more rows that failed; see the status column")
    if summary.n_failed or not logs.state.quiet:
        logs.write_line(f"{summary.n_read} read, {summary.n_ok} {verb}, {summary.n_failed} skipped")
    return InputError.exit_code if strict and summary.n_failed else 0


def close_training(result: "TrainResult") -> None:
    """Write the cross-validation of a run."""
    from molscore.report.text import cross_validation  # noqa: PLC0415 (--help)

    if not logs.state.quiet:
        for line in cross_validation(result.metrics):
            logs.write_line(line)


@contextmanager
def resume_hint(run_dir: Path) -> Iterator[None]:
    """Say after Ctrl-C how to go on, if the run got far enough to leave something."""
    try:
        yield
    except KeyboardInterrupt:
        if (run_dir / "config.json").exists():
            logs.write_line(f"{run_dir} keeps what is done; the same command with --resume goes on")
        raise

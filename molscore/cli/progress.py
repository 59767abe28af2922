"""Progress bars: on a terminal only, never on a pipe or in a log file."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from molscore.cli import logs


class ProgressCallback(Protocol):
    """Told how much is done, and how much there is where that is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Show it."""


@contextlib.contextmanager
def progress_bar(
    label: str, *, output: str | None = None, unit: str | None = None
) -> Iterator[ProgressCallback | None]:
    """Show a one-line bar on stderr while the block runs.

    Args:
        label: plain text in front of the bar.
        output: where data goes; rows that scroll over the same terminal are progress enough.
        unit: of what is done; how much of it is done in a second is then shown too.

    Yields:
        A callback for (done, total), or None where a bar has no place: stderr is not a
        terminal, rows go to the terminal, or `--quiet`. Rich itself honours `NO_COLOR`.
    """
    scrolling = output == "-" and sys.stdout is not None and sys.stdout.isatty()
    if logs.state.quiet or scrolling or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 (0.1 s, and only a terminal needs it)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text  # noqa: PLC0415

    class Rate(ProgressColumn):
        """Units a second over the last half minute."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed else "")

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        *([Rate()] if unit else []),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        refresh_per_second=4,
        redirect_stdout=False,  # data stays out of Rich's hands
        redirect_stderr=False,
    )
    task = bar.add_task(label, total=None)
    told = False

    def advance(done: int, total: int | None = None, /) -> None:
        nonlocal told
        if not told and unit:
            # What an earlier run did, or the start of this one, tells nothing of its speed.
            bar.reset(task, completed=done, total=total)
        bar.update(task, completed=done, total=total)
        told = True

    logs.state.bar = True
    try:
        with bar:
            yield advance
    finally:
        logs.state.bar = False

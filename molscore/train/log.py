"""What a run says, to its caller and to its own log."""

from collections.abc import Callable

from molscore.train.folder import RunFolder

Log = Callable[[str], None]
"""Told one plain line at a time."""


class RunLog:
    """Tell the caller, and the run's log as soon as there is a run to keep it in."""

    def __init__(self, folder: RunFolder, tell: Log) -> None:
        self._folder, self._tell = folder, tell
        self._early: list[str] | None = []

    def __call__(self, text: str) -> None:
        """Say one line."""
        self._tell(text)
        if self._early is None:
            self._folder.append_log([text])
        else:
            self._early.append(text)

    def start_writing(self) -> None:
        """The folder is there: write what was said before, and from now on everything."""
        self._folder.append_log(self._early or [])
        self._early = None

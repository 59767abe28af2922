"""Share out trainings among processes, so that none is idle at the end.

Five experts in two processes, one after the other, take three rounds, and in the last one a
process has nothing to do. An expert can stop at the end of an epoch and go on elsewhere, so
one of the five is cut: its first epochs are trained first, by one process, its last epochs
last, by the other, and both end together after two and a half rounds.

Source: McNaughton 1959, doi 10.1287/mnsc.6.1.1, the wrap-around rule; here taken up by whatever
process is free, in an order that gives his schedule where all trainings take the same time.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

GRAPH_STEPS: Final = 400
"""How many training steps take as long as the export of the graph they train."""


class Task(NamedTuple):
    """What a process is asked to do."""

    expert: int | None
    """number of the expert to train; None for the ONNX graph all share"""
    until: int | None = None
    """epoch to stop at, with a checkpoint; None trains to the end"""

    def to_line(self) -> str:
        """Return one line of text."""
        return json.dumps(self) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Task":
        """Read what `to_line` wrote."""
        return cls(*json.loads(line))


GRAPH: Final = Task(None)


def share_out(
    experts: Sequence[int], n_slots: int, *, epochs: int, graph: float | None
) -> list[Task]:
    """Return all tasks in the order in which free processes take them up.

    What an interrupted run has left is shared out as if nothing of it were done.

    A task of an expert that is in work elsewhere is to be left for later.

    Args:
        experts: to train.
        n_slots: processes.
        epochs: of each expert; 1 where a training cannot be cut.
        graph: length of the export, in trainings; None when the graph is there.
    """
    export = [] if graph is None else [GRAPH]
    n = len(experts)
    if n <= n_slots or n % n_slots == 0:
        return [*map(Task, experts), *export]
    first: list[Task] = []
    whole: list[Task] = []
    end = graph or 0.0
    each = (n + end) / n_slots
    for expert in experts:
        begin, end = end, end + 1.0
        # One process works up to the border, the next one from there on: at its own beginning,
        # so it has the first epochs.
        border = (begin // each + 1.0) * each
        until = round((end - border) * epochs)
        if 0 < until < epochs:
            first.append(Task(expert, until))
        else:
            whole.append(Task(expert))
    # What has most left to do was put down first, and is taken up first.
    last = [Task(task.expert) for task in sorted(first, key=lambda task: task.until or 0)]
    return [*first, *export, *whole, *last]

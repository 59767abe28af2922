"""How trainings are shared out among processes."""

import json
import sys
from pathlib import Path

import pytest

from molscore.train import pool
from molscore.train.shares import GRAPH, Task, share_out

EPOCHS = 60


def simulate(tasks: list[Task], n_slots: int, graph: float) -> tuple[float, dict[int, list[int]]]:
    """Play the tasks in trainings of length 1; return the end, and the epochs of each expert."""
    waiting, free = list(tasks), [0.0] * n_slots
    at: dict[int | None, int] = {}
    ends: dict[int | None, float] = {}
    trained: dict[int, list[int]] = {}
    while waiting:
        slot = min(range(n_slots), key=free.__getitem__)
        task = next((t for t in waiting if ends.get(t.expert, 0.0) <= free[slot] + 1e-9), None)
        if task is None:
            free[slot] = min(end for end in free if end > free[slot])
            continue
        waiting.remove(task)
        if task.expert is None:
            free[slot] += graph
            continue
        begin, until = at.get(task.expert, 0), task.until or EPOCHS
        trained.setdefault(task.expert, []).append(until)
        free[slot] += (until - begin) / EPOCHS
        at[task.expert], ends[task.expert] = until, free[slot]
    return max(free), trained


@pytest.mark.parametrize("n_slots", range(1, 9))
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 10, 15, 25, 27])
@pytest.mark.parametrize("graph", [None, 0.01, 0.2])
def test_all_processes_end_together(n: int, n_slots: int, graph: float | None) -> None:
    tasks = share_out(list(range(3, 3 + n)), n_slots, epochs=EPOCHS, graph=graph)
    end, trained = simulate(tasks, n_slots, graph or 0.0)
    assert sorted(trained) == list(range(3, 3 + n))
    assert all(parts[-1] == EPOCHS and parts == sorted(set(parts)) for parts in trained.values())
    assert tasks.count(GRAPH) == (graph is not None)
    if n > n_slots and n % n_slots:
        # An epoch cannot be cut, and the export cannot either.
        assert end <= (n + (graph or 0)) / n_slots + 2 / EPOCHS + (graph or 0) / 2


def test_a_long_export_is_one_of_the_first_tasks() -> None:
    tasks = share_out(range(5), 2, epochs=EPOCHS, graph=2.0)
    assert tasks.index(GRAPH) <= 1
    end, _ = simulate(tasks, 2, 2.0)
    assert end <= 4.0


def test_five_in_two_are_cut_once() -> None:
    tasks = share_out(range(5), 2, epochs=60, graph=None)
    assert tasks == [Task(2, 30), Task(0), Task(1), Task(3), Task(4), Task(2)]


def test_what_cannot_be_cut_is_not() -> None:
    assert all(t.until is None for t in share_out(range(5), 2, epochs=1, graph=0.1))


def test_nothing_to_train_leaves_the_graph() -> None:
    assert share_out([], 2, epochs=5, graph=0.1) == [GRAPH]
    assert share_out([], 2, epochs=5, graph=None) == []


@pytest.mark.parametrize("task", [GRAPH, Task(0), Task(12, 30)])
def test_a_task_comes_through_a_pipe(task: Task) -> None:
    assert Task.from_line(task.to_line()) == task


# A worker that notes when a task began and ended, and trains nothing.
WORKER = """
import json, sys, time
say = lambda **event: print(json.dumps(event), flush=True)
say(event="ready")
for line in sys.stdin:
    for sign in "+-":
        with open(sys.argv[1], "a") as notes:
            notes.write(json.dumps([sign, json.loads(line)]) + "\\n")
        time.sleep(0.3)
    say(event="done")
"""


@pytest.mark.parametrize(
    "tasks",
    [
        share_out(range(5), 2, epochs=EPOCHS, graph=0.2),
        # The second part is due at once, and there is nothing else to do.
        [Task(0, 30), Task(0), Task(0)],
        [GRAPH],
    ],
    ids=["shared out", "one expert", "graph alone"],
)
def test_every_task_is_done_once_and_no_expert_twice_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[Task]
) -> None:
    notes = tmp_path / "notes"
    command = [sys.executable, "-c", WORKER, str(notes)]
    monkeypatch.setattr(pool, "worker_command", lambda *_: command)
    pool.train_experts(
        tmp_path, tasks, n_workers=2, threads=1, device="cpu", report=lambda *_: None
    )
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    begun = [Task(*t) for sign, t in lines if sign == "+"]
    assert sorted(begun, key=str) == sorted(tasks, key=str)
    in_work: list[int | None] = []
    for sign, (expert, _) in lines:
        if sign == "+":
            assert expert not in in_work
            in_work.append(expert)
        else:
            in_work.remove(expert)
    assert len(lines) == 2 * len(tasks)

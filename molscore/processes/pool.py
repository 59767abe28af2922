"""Worker processes, fed in order and answering in order.

Each worker has a thread in the parent that sends it a task and waits for the answer, so a
worker that dies is noticed at once: its pipe ends.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Self, TypeVar

from molscore.errors import BundleError, InputError, MolscoreError
from molscore.interrupts import deaf_children
from molscore.processes.worker import Message, Serve, receive, send

TASKS_PER_WORKER: Final = 2
"""Tasks on their way per worker: one in work, one waiting."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Work(Generic[T, R]):
    """What workers are to do.

    Attributes:
        serve: a function at the top of a module, which the workers import.
        setup: what it is given; JSON.
        to_message: makes JSON of a task.
        from_message: makes a result of the answer to it.
        describe: says what is done with a task, as in "predicting rows 1 to 64".
    """

    serve: Serve
    setup: Message
    to_message: Callable[[T], Message]
    from_message: Callable[[Message], R]
    describe: Callable[[T], str]


# The parent's import path, so that the worker finds the same packages.
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from molscore.processes.worker import main; main()"
)
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerPool(Generic[T, R]):
    """A fixed number of worker processes; a context manager.

    Args:
        work: what they do.
        n_workers: most processes, at least 1; few tasks start fewer.

    Leaving the context ends the processes: after an exception at once, without waiting for
    tasks in work.
    """

    def __init__(self, work: Work[T, R], n_workers: int) -> None:
        self.n_workers = n_workers
        self._work = work
        self._tasks: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, R | Exception]] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def _start_worker(self) -> None:
        try:
            process = _start()
            self._processes.append(process)
            thread = threading.Thread(target=self._serve, args=(process,), daemon=True)
            thread.start()
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
            raise MolscoreError(f"cannot start a worker process: {error}") from None
        self._threads.append(thread)

    def run(self, tasks: Iterator[T]) -> Iterator[R]:
        """Yield one result per task, in their order.

        At most `TASKS_PER_WORKER` per worker are taken from `tasks` before their results are.

        Raises:
            MolscoreError: when a worker dies or fails.
        """
        pending: deque[int] = deque()
        done: dict[int, R] = {}
        for index, task in enumerate(tasks):
            pending.append(index)
            self._tasks.put((index, task))
            if len(self._processes) < min(self.n_workers, len(pending)):
                self._start_worker()
            self._drain(done)  # the next task may be long in coming
            while pending and (
                len(pending) >= TASKS_PER_WORKER * self.n_workers or pending[0] in done
            ):
                yield self._take(pending.popleft(), done)
        while pending:
            yield self._take(pending.popleft(), done)

    def _take(self, wanted: int, done: dict[int, R]) -> R:
        """Wait for the result of task `wanted`, keeping those that come before it is there."""
        while wanted not in done:
            try:
                # A wait without an end could not be interrupted on Windows.
                index, answer = self._answers.get(timeout=1.0)
            except queue.Empty:
                continue
            _note(index, answer, done)
        return done.pop(wanted)

    def _drain(self, done: dict[int, R]) -> None:
        """Take the results that are there."""
        with contextlib.suppress(queue.Empty):
            while True:
                _note(*self._answers.get_nowait(), done)

    def _serve(self, process: "subprocess.Popen[bytes]") -> None:
        """Feed one worker: a thread of the parent."""
        inbox, outbox = process.stdin, process.stdout
        if inbox is None or outbox is None:
            raise RuntimeError("a worker without pipes")
        started = False
        while (item := self._tasks.get()) is not None:
            index, task = item
            answer: R | Exception
            try:
                if not started:
                    serve = self._work.serve
                    first = {"module": serve.__module__, "function": serve.__name__}
                    send(inbox, first | {"setup": self._work.setup})
                    started = True
                send(inbox, self._work.to_message(task))
                message = receive(outbox)
                problem = _problem(message, self._work.describe(task))
                answer = self._work.from_message(message) if problem is None else problem
            # A torn pipe or message (whose length may be any): the worker is gone.
            except (OSError, EOFError, ValueError, MemoryError):
                answer = _death(process, self._work.describe(task))
            except Exception as error:  # noqa: BLE001 (a fault of our own: raised by `run`)
                answer = error
            self._answers.put((index, answer))
            if isinstance(answer, Exception):
                return

    def _kill(self) -> None:
        if sys.is_finalizing():  # the threads stand still, and the pipes close by themselves
            return
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        # The threads see the ends of the pipes, or this; only then may the pipes be closed.
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # unsent bytes for a dead worker
                        stream.close()


def _note(index: int, answer: R | Exception, done: dict[int, R]) -> None:
    if isinstance(answer, Exception):
        raise answer
    done[index] = answer


def _start() -> "subprocess.Popen[bytes]":
    with deaf_children():
        return subprocess.Popen(  # noqa: S603 (our own interpreter and code)
            # -P: no module of the working directory may stand in for one of ours.
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | dict.fromkeys(_ONE_THREAD, "1"),
        )


def _death(process: "subprocess.Popen[bytes]", doing: str) -> MolscoreError:
    try:
        how = how_it_ended(process.wait(timeout=5))
    except subprocess.TimeoutExpired:
        how = "stopped answering"
    return MolscoreError(
        f"a worker process (pid {process.pid}) {how} while {doing}; "
        "if memory ran out, use fewer --workers"
    )


def how_it_ended(code: int) -> str:
    """Say how a process ended: code of its exit, or minus the number of a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _problem(answer: Message, doing: str) -> MolscoreError | None:
    if "problem" not in answer:
        return None
    kind, text = answer["problem"], answer["text"]
    if kind == BundleError.__name__:
        return BundleError(text)
    if kind == InputError.__name__:
        return InputError(text)
    if kind == MolscoreError.__name__:
        return MolscoreError(text)
    return MolscoreError(f"a worker process failed while {doing}: {kind}: {text}")

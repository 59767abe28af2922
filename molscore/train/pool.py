"""Train experts in parallel processes and follow what they say."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import molscore
from molscore.errors import ConfigError, ExportError, InputError, MolscoreError
from molscore.processes.pool import how_it_ended
from molscore.train.folder import RunFolder
from molscore.train.shares import GRAPH, Task

_KINDS: Final[dict[str, type[MolscoreError]]] = {
    "ConfigError": ConfigError,
    "ExportError": ExportError,
    "InputError": InputError,
}

EpochReport = Callable[[int, int, float], None]
"""Told (expert, epochs done, mean training loss) after every epoch of every expert."""


@dataclass
class _Worker:
    process: "subprocess.Popen[str]"
    task: Task | None = None
    is_ready: bool = False
    is_sent_away: bool = False


def worker_command(run_dir: Path, device: str) -> list[str]:
    """Return the command of one worker.

    `-P` keeps the working directory off the import path: a file called torch.py that happens
    to lie there must not be imported.
    """
    return [sys.executable, "-P", "-m", "molscore.train.worker", str(run_dir), device]


def worker_environment(run_dir: Path, threads: int) -> dict[str, str]:
    """Return the environment of a worker: this molscore, and no more threads than stored."""
    package_root = str(Path(molscore.__file__).resolve().parent.parent)
    paths = [package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # Tensors of a step are freed and asked for again: keep the memory (glibc) rather than
        # give it back and have every page cleared anew, some 4 % of the time.
        "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
        "MALLOC_TOP_PAD_": str(16 << 20),
        # Without it, deterministic algorithms have no matrix product on a CUDA device.
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        # Of torch's compiler, which the exporter starts; it would leave it in the system's folder.
        "TORCHINDUCTOR_CACHE_DIR": str(RunFolder(run_dir).scratch_path.resolve() / "inductor"),
    }


def train_experts(
    run_dir: Path,
    tasks: Sequence[Task],
    *,
    n_workers: int,
    threads: int,
    device: str,
    report: EpochReport,
) -> None:
    """Carry out what is left to do in a run folder.

    Args:
        run_dir: a started run folder.
        tasks: what is left to do, taken up in this order; of two tasks of one expert the
            second waits for the first.
        n_workers: processes at a time.
        threads: torch threads of each.
        device: torch device of each.
        report: told after every epoch.

    Raises:
        MolscoreError: when a worker says that it failed, or dies. All others are ended first;
            their checkpoints stay.
    """
    waiting = list(tasks)
    events: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
    with ExitStack() as stack:
        workers = [
            _start(run_dir, threads, device, events, stack)
            for _ in range(min(n_workers, len(waiting)))
        ]
        free: list[_Worker] = []
        while waiting or any(worker.task is not None for worker in workers):
            try:
                # A wait without an end may not notice Ctrl-C: on Windows, and where the system
                # hands the signal to another thread.
                worker, event = events.get(timeout=1.0)
            except queue.Empty:
                continue
            if event is None:
                # One that was still starting when the last task was given is not needed.
                if worker.is_sent_away or (worker.task is None and not waiting):
                    continue
                raise _death(worker)
            match event["event"]:
                case "epoch":
                    report(event["expert"], event["epoch"], event["loss"])
                case "failed":
                    kind = _KINDS.get(event["kind"], MolscoreError)
                    raise kind(f"training failed: {event['message']}")
                case "ready" | "done":
                    worker.task, worker.is_ready = None, True
                    free.append(worker)
                    _hand_out(waiting, free, workers)
        for worker in workers:
            _send_away(worker)
        for worker in workers:
            # One that is still starting is given some seconds to end by itself.
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(timeout=5)


def _start(
    run_dir: Path,
    threads: int,
    device: str,
    events: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]",
    stack: ExitStack,
) -> _Worker:
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            worker_command(run_dir, device),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=worker_environment(run_dir, threads),
            # Ctrl-C reaches the parent alone, which ends the workers in order.
            start_new_session=True,
        )
    except OSError as error:
        raise MolscoreError(f"cannot start a training process: {error}") from None
    worker = _Worker(process)
    stack.callback(_end, process)

    def listen() -> None:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        try:
            for line in process.stdout:
                event = _understand(line)
                if event is None:
                    # A library that prints while it is imported, or the half of a message.
                    sys.stderr.write(line)
                else:
                    events.put((worker, event))
        finally:
            events.put((worker, None))

    threading.Thread(target=listen, daemon=True).start()
    return worker


def _understand(line: str) -> dict[str, Any] | None:
    """Return a worker's message, or None for a line that is none."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _hand_out(waiting: list[Task], free: list[_Worker], workers: Sequence[_Worker]) -> None:
    """Give the free workers what they may do now; send them away when nothing is left."""
    while free and waiting:
        in_work = {worker.task.expert for worker in workers if worker.task is not None}
        task = next((task for task in waiting if task.expert not in in_work), None)
        if task is None:  # what waits goes on where another worker has not stopped yet
            return
        waiting.remove(task)
        _give(free.pop(0), task)
    if not waiting:
        while free:
            _send_away(free.pop())


def _give(worker: _Worker, task: Task) -> None:
    stdin = worker.process.stdin
    if stdin is None:
        raise RuntimeError("a worker without pipes")
    worker.task = task
    try:
        stdin.write(task.to_line())
        stdin.flush()
    except BrokenPipeError:
        raise _death(worker) from None


def _send_away(worker: _Worker) -> None:
    """Close the stdin of a worker that does nothing, at which it ends."""
    worker.is_sent_away = True
    if worker.process.stdin is not None:
        worker.process.stdin.close()


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def _death(worker: _Worker) -> MolscoreError:
    code = worker.process.wait()
    if worker.task is None:
        doing = "waiting for work" if worker.is_ready else "starting"
    else:
        doing = "exporting" if worker.task == GRAPH else f"training expert {worker.task.expert}"
    hint = " (out of memory?)" if code == -9 else ""
    return MolscoreError(
        f"a training process {how_it_ended(code)}{hint} while {doing}; run the same command with "
        "--resume to go on from its last checkpoint"
    )

"""A process that trains experts: `python -m molscore.train.worker RUN_DIR`.

It reads tasks from stdin, one a line (`molscore.train.shares.Task`). It writes one JSON object
a line to stdout: `ready`, `epoch`, `done` or `failed`. When its stdin closes (its parent has
ended, in whatever way) it ends too. Being a program of its own, it needs no guard in the
caller's script and inherits no threads.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import torch

from molscore.bundle.trees import blend_skeleton, tree_skeleton
from molscore.errors import MolscoreError
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model
from molscore.train.data import TrainingData
from molscore.train.expert import ExpertTrainer, Progress, train_until
from molscore.train.folder import RunConfig, RunFolder
from molscore.train.shares import Task
from molscore.train.trees import train_trees


def _watch_parent(parent: int) -> None:
    """End this process when the parent is gone: a killed parent cannot say goodbye."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _serve(folder: RunFolder, requests: TextIO, say: Any, device: str) -> None:
    config = folder.read_config()
    data = folder.read_data()
    torch.set_num_threads(config.train.threads)
    # Bit for bit is promised for the CPU; an accelerator may lack some deterministic form.
    # (`use_deterministic_algorithms` would import torch's compiler to tell it, a second.)
    torch.set_deterministic_debug_mode("error" if device == "cpu" else "warn")
    # It would also clear every new tensor, some 4 % of the time; nothing here reads one before
    # it is written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    say({"event": "ready"})
    for line in requests:
        number, until = Task.from_line(line)
        if number is None:
            folder.write_skeleton(_export(config, data, folder.scratch()))
            say({"event": "done"})
            continue

        def progress(epoch: int, loss: float, expert: int = number) -> None:
            say({"event": "epoch", "expert": expert, "epoch": epoch, "loss": loss})

        _train(number, until, config, data, folder, device, progress)
        say({"event": "done"})


def _train(
    expert: int,
    until: int | None,
    config: RunConfig,
    data: TrainingData,
    folder: RunFolder,
    device: str,
    progress: Progress,
) -> None:
    if config.kind(expert) == "trees":
        # Numbered from 0, so that the trees of a blend are those of block catboost.
        number = expert % config.train.n_experts
        result, scaler = train_trees(
            data, config.train, number, scratch=folder.scratch(), progress=progress
        )
        folder.write_expert(expert, result, scaler)
        return
    trainer = ExpertTrainer(
        _of_network(data, config.model).of_expert(expert),
        config.model,
        config.train,
        expert,
        device,
        start=folder.read_start(expert),
    )
    train_until(
        trainer,
        until or config.train.epochs,
        checkpoint_path=folder.checkpoint(expert),
        progress=progress,
        clock=time.monotonic,
    )
    if until is None:
        folder.write_expert(expert, trainer.result(), trainer.scaler)


def _of_network(data: TrainingData, model: ModelConfig) -> TrainingData:
    """Return what the network of a blend trains on: descriptors only if it asks for them."""
    if model.descriptors == "rdkit":
        return data
    return data.without_descriptors()


def _export(config: RunConfig, data: TrainingData, scratch: Path) -> bytes:
    """Return the graph of any expert: it does not depend on the weights."""
    n_targets, iterations = data.n_targets, config.train.iterations
    if "graph" not in config.model.kinds:
        return tree_skeleton(n_targets, iterations, data.n_descriptors)
    # Seconds, which only the worker that exports should spend.
    from molscore.bundle.export import export_skeleton  # noqa: PLC0415

    seen = _of_network(data, config.model)
    skeleton = export_skeleton(build_model(config.model, n_targets, seen.n_descriptors), scratch)
    if not config.model.has_trees:
        return skeleton
    return blend_skeleton(skeleton, n_targets, iterations, data.n_descriptors)


def main(arguments: list[str]) -> int:
    """Serve until stdin closes; return the exit code."""
    run_dir, device = arguments
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()

    # What a library prints goes to stderr: only messages may reach the parent.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        messages.write(json.dumps(message) + "\n")
        messages.flush()

    try:
        _serve(RunFolder(Path(run_dir)), sys.stdin, say, device)
    except BrokenPipeError:  # the parent is gone; nobody is left to tell
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 (the parent reports it once and ends the run)
        kind, message = type(error).__name__, str(error)
        if not isinstance(error, MolscoreError | OSError | RuntimeError):
            message = f"{kind}: {message}"
        say({"event": "failed", "kind": kind, "message": message})
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # All files are written and closed, and unloading torch takes the better part of a second.
    os._exit(code)

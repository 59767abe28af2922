"""A process that trains experts: `python -m molscore.train.worker RUN_DIR`.

It reads tasks from stdin, one a line: the number of an expert to train, or `skeleton` for the
ONNX graph all experts share. It writes one JSON object a line to stdout: `ready`, `epoch`,
`done` or `failed`. When its stdin closes (its parent has ended, in
whatever way) it ends too. Being a program of its own, it needs no guard in the caller's script
and inherits no threads.
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
from molscore.train.expert import ExpertTrainer, train_expert
from molscore.train.folder import SKELETON, RunConfig, RunFolder
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
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    say({"event": "ready"})
    for line in requests:
        if line.strip() == SKELETON:
            folder.write_skeleton(_export(config, data, folder.scratch()))
            say({"event": "done"})
            continue
        expert = int(line)

        def progress(epoch: int, loss: float, expert: int = expert) -> None:
            say({"event": "epoch", "expert": expert, "epoch": epoch, "loss": loss})

        if config.kind(expert) == "trees":
            # Numbered from 0, so that the trees of a blend are those of block catboost.
            number = expert % config.train.n_experts
            result, scaler = train_trees(
                data, config.train, number, scratch=folder.scratch(), progress=progress
            )
            folder.write_expert(expert, result, scaler)
        else:
            trainer = ExpertTrainer(
                _of_network(data, config.model).of_expert(expert),
                config.model,
                config.train,
                expert,
                device,
                start=folder.read_start(expert),
            )
            result = train_expert(
                trainer,
                checkpoint_path=folder.checkpoint(expert),
                progress=progress,
                clock=time.monotonic,
            )
            folder.write_expert(expert, result, trainer.scaler)
        say({"event": "done"})


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
    sys.exit(main(sys.argv[1:]))

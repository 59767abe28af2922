"""A process that trains experts: `python -m molscore.train.worker RUN_DIR`.

It reads the numbers of experts from stdin, one a line, and writes one JSON object a line to
stdout: `ready`, `epoch`, `done` or `failed`. When its stdin closes (its parent has ended, in
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

from molscore.errors import MolscoreError
from molscore.train.expert import ExpertTrainer, train_expert
from molscore.train.folder import RunFolder


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
        expert = int(line)
        trainer = ExpertTrainer(data, config.model, config.train, expert, device)

        def progress(epoch: int, loss: float, expert: int = expert) -> None:
            say({"event": "epoch", "expert": expert, "epoch": epoch, "loss": loss})

        result = train_expert(
            trainer,
            checkpoint_path=folder.checkpoint(expert),
            progress=progress,
            clock=time.monotonic,
        )
        folder.write_expert(expert, result, trainer.scaler)
        say({"event": "done", "expert": expert, "loss": result.loss})


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
    except (MolscoreError, OSError, RuntimeError) as error:
        # Told to the parent, which reports it once and ends the run.
        say({"event": "failed", "kind": type(error).__name__, "message": str(error)})
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Checkpoints of one expert, as safetensors: nothing in them can execute."""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from molscore.errors import InputError
from molscore.train.files import write_atomically


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training run at the end of an epoch.

    Attributes:
        epoch: epochs done.
        loss: mean training loss of the last one.
        model: the model's state dict.
        optimizer: AdamW's state, parameter number -> name -> tensor.
    """

    epoch: int
    loss: float
    model: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint beside `path` and rename it, so a kill leaves the old one whole."""
    tensors = {f"model/{k}": v.detach().contiguous() for k, v in checkpoint.model.items()}
    for number, state in checkpoint.optimizer.items():
        tensors |= {f"optimizer/{number}/{k}": v.contiguous() for k, v in state.items()}
    about = {"epoch": checkpoint.epoch, "loss": checkpoint.loss}
    write_atomically(path, lambda p: save_file(tensors, p, {"checkpoint": json.dumps(about)}))


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        InputError: when the file is damaged.
    """
    model: dict[str, Tensor] = {}
    optimizer: dict[int, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["checkpoint"])
            for key in file.keys():  # noqa: SIM118 - not a dict
                kind, _, rest = key.partition("/")
                if kind == "model":
                    model[rest] = file.get_tensor(key)
                else:
                    number, _, name = rest.partition("/")
                    optimizer.setdefault(int(number), {})[name] = file.get_tensor(key)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path}: the checkpoint cannot be read ({error}); delete it to train this expert "
            "from its start"
        ) from None
    return Checkpoint(about["epoch"], about["loss"], model, optimizer)

"""The run folder: everything a training run reads, keeps and leaves.

config.json                   the exact configuration, with the hash of the training data
data.safetensors              what the experts train on
checkpoints/expert-NNN.safetensors    while an expert trains
experts/expert-NNN.safetensors        when it is done
start.safetensors             the weights to start from, where there are such
oof.csv, metrics.json, metrics.csv    the cross-validation
log.txt                       what was said
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from molscore.chem.descriptors import DescriptorScaler
from molscore.chem.policy import ChemPolicy
from molscore.config import Config
from molscore.data.endpoints import Target
from molscore.errors import ConfigError, InputError
from molscore.nn.config import ExpertKind, ModelConfig
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.files import write_atomically
from molscore.train.result import ExpertResult
from molscore.train.start import Weights

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

RUN_SCHEMA: Final = 1


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """What decides the outcome of a run; a run is resumed only under the same one.

    `structures` says whether the bundle may carry those of the table. `teacher_sha256` is that of
    the bundle students learn from, "" where experts learn measured values.
    """

    schema: int = RUN_SCHEMA
    molscore_version: str = ""
    featurizer_version: int = 0
    data_sha256: str = ""
    targets: tuple[Target, ...] = ()
    policy: ChemPolicy = ChemPolicy()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    device: str = "cpu"
    start_sha256: str = ""
    structures: bool = True
    teacher_sha256: str = ""

    @property
    def n_experts(self) -> int:
        """Experts to train.

        Those of a blend's trees come behind those of its networks, the student that ships
        behind those that are each blind to a fold.
        """
        if self.teacher_sha256:
            return self.train.folds + 1 if self.train.folds > 1 else 1
        return len(self.model.kinds) * self.train.n_experts

    @property
    def noun(self) -> str:
        """What an expert is called in a log."""
        return "student" if self.teacher_sha256 else "expert"

    def kind(self, expert: int) -> ExpertKind:
        """Return what an expert is."""
        return "graph" if self.teacher_sha256 else self.model.kinds[expert // self.train.n_experts]

    def n_steps(self, expert: int) -> int:
        """Return the steps an expert reports: epochs, or the targets of trees."""
        return len(self.targets) if self.kind(expert) == "trees" else self.train.epochs


class RunFolder:
    """Paths and files of one run.

    Args:
        path: the folder; made when something is first written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def config_path(self) -> Path:
        """The file that marks a folder as a run."""
        return self.path / "config.json"

    def exists(self) -> bool:
        """Return whether a run was started here."""
        return self.config_path.exists()

    def checkpoint(self, expert: int) -> Path:
        """Return where an expert's checkpoint is kept."""
        return self.path / "checkpoints" / f"expert-{expert:03d}.safetensors"

    def expert(self, expert: int) -> Path:
        """Return where a finished expert is kept."""
        return self.path / "experts" / f"expert-{expert:03d}.safetensors"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other runs out of this folder; the system lets go when the process ends.

        Raises:
            ConfigError: when another run is at work here.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise ConfigError(
                f"another run is at work in {self.path}: wait for it, or choose another --run-dir"
            ) from None
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            os.close(handle)

    def start(self, config: RunConfig, data: TrainingData, weights: Sequence[Weights] = ()) -> None:
        """Write data and configuration; the configuration last, as it marks the folder.

        Args:
            config: of the run.
            data: what the experts train on.
            weights: what they start from, see `read_start`.
        """
        for folder in (self.path, self.path / "checkpoints", self.path / "experts"):
            folder.mkdir(parents=True, exist_ok=True)
        data.save(self.path / "data.safetensors")
        if weights:
            arrays = {f"{i}/{name}": a for i, w in enumerate(weights) for name, a in w.items()}
            write_atomically(self.start_path, lambda p: save_file(arrays, p))
        self.write_json("config.json", config.to_dict())

    def clear(self) -> None:
        """Remove what an earlier run left, and nothing else that is in the folder."""
        self.config_path.unlink(missing_ok=True)
        for name in (
            *("data.safetensors", "start.safetensors", "skeleton.onnx", "log.txt"),
            *("oof.csv", "metrics.json", "metrics.csv"),
        ):
            (self.path / name).unlink(missing_ok=True)
        for folder in ("checkpoints", "experts"):
            for path in (self.path / folder).glob("expert-*.safetensors"):
                path.unlink()
        self.remove_partial_files()

    @property
    def scratch_path(self) -> Path:
        """Where workers, which may be killed, keep temporary files."""
        return self.path / "scratch"

    def scratch(self) -> Path:
        """Return `scratch_path`, made if it is not there."""
        self.scratch_path.mkdir(exist_ok=True)
        return self.scratch_path

    def remove_partial_files(self) -> None:
        """Remove what a killed process was in the middle of writing, and temporary files."""
        shutil.rmtree(self.scratch_path, ignore_errors=True)
        for folder in (self.path, self.path / "checkpoints", self.path / "experts"):
            for path in folder.glob(".*.partial"):
                path.unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, whole or not at all."""
        text = json.dumps(value, indent=2, allow_nan=False) + "\n"
        write_atomically(self.path / name, lambda p: _write_text(p, text))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, whole or not at all."""
        write_atomically(self.path / name, lambda p: _write_text(p, text))

    def append_log(self, lines: Sequence[str]) -> None:
        """Add lines to the log, each with the time (UTC)."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with (self.path / "log.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{now} {line}\n" for line in lines)

    @property
    def skeleton_path(self) -> Path:
        """Where the ONNX graph of an expert is kept."""
        return self.path / "skeleton.onnx"

    def write_skeleton(self, onnx: bytes) -> None:
        """Keep the ONNX graph of an expert."""
        write_atomically(self.skeleton_path, lambda p: _write_bytes(p, onnx))

    def read_config(self) -> RunConfig:
        """Read the configuration of the run that is here.

        Raises:
            InputError: when it is missing or cannot be read.
        """
        try:
            data = json.loads(self.config_path.read_text(encoding="utf-8"))
            return RunConfig.from_dict(data, where=str(self.config_path))
        except (OSError, ValueError, ConfigError) as error:
            raise InputError(
                f"{self.config_path}: not the configuration of a run ({error})"
            ) from None

    def read_data(self) -> TrainingData:
        """Read the training data."""
        return TrainingData.load(self.path / "data.safetensors")

    @property
    def start_path(self) -> Path:
        """Where the weights to start from are kept."""
        return self.path / "start.safetensors"

    def read_start(self, expert: int) -> Weights | None:
        """Read what an expert starts from: weights of model e mod n, or None without any."""
        if not self.start_path.exists():
            return None
        with safe_open(self.start_path, framework="numpy") as file:
            names = list(file.keys())
            number = expert % len({name.partition("/")[0] for name in names})
            prefix = f"{number}/"
            return {
                name.removeprefix(prefix): file.get_tensor(name)
                for name in names
                if name.startswith(prefix)
            }

    def write_expert(
        self, expert: int, result: ExpertResult, scaler: DescriptorScaler | None
    ) -> None:
        """Keep a finished expert and drop its checkpoint."""
        arrays: dict[str, NDArray[Any]] = {
            f"weights/{k}": np.ascontiguousarray(v) for k, v in result.weights.items()
        }
        arrays |= {"rows": result.rows, "predictions": result.predictions}
        if scaler is not None:
            arrays |= {f"scaler/{k}": v for k, v in scaler.to_arrays().items()}
        about = {"loss": repr(result.loss)}
        write_atomically(self.expert(expert), lambda p: save_file(arrays, p, about))
        self.checkpoint(expert).unlink(missing_ok=True)

    def read_expert(self, expert: int) -> tuple[ExpertResult, DescriptorScaler | None]:
        """Read a finished expert.

        Raises:
            InputError: when the file is damaged.
        """
        path = self.expert(expert)
        try:
            with safe_open(path, framework="numpy") as file:
                loss = float(file.metadata()["loss"])
                arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise InputError(
                f"{path}: the expert cannot be read ({error}); delete the file and resume"
            ) from None
        weights = _under(arrays, "weights/")
        scaler = _under(arrays, "scaler/")
        result = ExpertResult(weights, arrays["rows"], arrays["predictions"], loss)
        return result, DescriptorScaler.from_arrays(scaler) if scaler else None


def _under(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")

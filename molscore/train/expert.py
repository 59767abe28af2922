"""One expert: a model trained on all folds but one."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from molscore.chem.descriptors import DescriptorScaler
from molscore.errors import MolscoreError
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model
from molscore.train.backbone import take_backbone
from molscore.train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.result import ExpertResult

CHECKPOINT_SECONDS: Final = 2.0
EVAL_BATCH: Final = 256
START_RATE: Final = 1 / 25
ALIGNED: Final = 64
"""Numbers a parameter is padded to a multiple of."""

Progress = Callable[[int, float], None]
"""Called after every epoch with the number of epochs done and the mean training loss."""


def learning_rate(step: int, n_steps: int, config: TrainConfig) -> float:
    """Return the rate of step `step` of `n_steps`: one cycle of two half cosines.

    It climbs from 1/25 of the top to the top over the share `warmup` of the steps, then falls
    to zero.

    Source: Smith and Topin 2017, arXiv 1708.07120, in the cosine form of
    `torch.optim.lr_scheduler.OneCycleLR`.
    """
    climb = config.warmup * n_steps
    if step < climb:
        share = 0.5 * (1.0 - math.cos(math.pi * step / climb))
        return config.learning_rate * (START_RATE + (1.0 - START_RATE) * share)
    share = (step - climb) / max(1.0, n_steps - climb)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * share))


def flatten_parameters(parameters: list[nn.Parameter]) -> nn.Parameter:
    """Move parameters, and their gradients, into one flat parameter each is a view of.

    An optimiser then has one tensor to step, a tenth of the work for a small model.
    """
    starts = [0]
    for p in parameters:
        # Each starts at a border of cache lines: products of others are a third slower.
        starts.append(starts[-1] + math.ceil(p.numel() / ALIGNED) * ALIGNED)
    flat = nn.Parameter(torch.zeros(starts[-1], device=parameters[0].device))
    flat.grad = torch.zeros_like(flat)
    for p, start in zip(parameters, starts, strict=False):
        place = slice(start, start + p.numel())
        flat.data[place] = p.detach().reshape(-1)
        p.data = flat.data[place].view(p.shape)
        p.grad = flat.grad[place].view(p.shape)
    return flat


def masked_loss(z: Tensor, y: Tensor, present: Tensor, is_class: Tensor) -> Tensor:
    """Return the mean loss over the labels that are there.

    Squared error for regression targets (in standardised units), cross-entropy for classes.

    Args:
        z: float32 [n, n_targets], outputs in standardised units or logits.
        y: float32 [n, n_targets], any finite value where there is no label.
        present: float32 [n, n_targets], 1 where there is a label.
        is_class: bool [n_targets].
    """
    loss = functional.mse_loss(z, y, reduction="none")
    if bool(is_class.any()):
        entropy = functional.binary_cross_entropy_with_logits(z, y, reduction="none")
        loss = torch.where(is_class, entropy, loss)
    return (loss * present).sum() / present.sum().clamp(min=1.0)


class ExpertTrainer:
    """Train one expert, from scratch or from a checkpoint.

    Every random number comes from (seed, expert, epoch), so a run that was killed and resumed
    at an epoch's end gives the weights of a run that was not.

    Args:
        data: the whole data set.
        model: the architecture.
        train: the schedule.
        expert: number of the expert, repeat * K + fold.
        device: where to train.
        start: weights to start from, by state-dict name; see `molscore.train.start`.
    """

    def __init__(
        self,
        data: TrainingData,
        model: ModelConfig,
        train: TrainConfig,
        expert: int,
        device: str = "cpu",
        start: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        self.config, self.expert, self.device = train, expert, device
        fold = expert % train.folds
        self.data = data
        self.rows, self.held_out = data.parts(fold)
        self.is_class = torch.tensor(data.is_class, device=device)
        torch.manual_seed(self._seed(0))
        self.model = build_model(model, data.n_targets, data.n_descriptors)
        self._fit_inputs()
        self._fit_targets()
        if start is not None:
            take_backbone(self.model, start)
        self.model.to(device)
        trained = self.model.head if train.freeze else self.model
        self.model.requires_grad_(not train.freeze)
        trained.requires_grad_(True)
        # Matrices decay; vectors (biases, learned steps) do not.
        parameters = list(trained.parameters())
        self.flat = [
            flatten_parameters([p for p in parameters if p.ndim >= 2]),
            flatten_parameters([p for p in parameters if p.ndim < 2]),
        ]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": [self.flat[0]], "weight_decay": train.weight_decay},
                {"params": [self.flat[1]], "weight_decay": 0.0},
            ],
            lr=train.learning_rate,
            fused=True,
        )
        self.steps_per_epoch = math.ceil(len(self.rows) / train.batch_size)
        self.epoch = 0
        self.loss = math.nan

    def _seed(self, epoch: int) -> int:
        words = np.random.SeedSequence([self.config.seed, self.expert, epoch]).generate_state(2)
        return int(words[0]) << 31 ^ int(words[1])

    def _fit_inputs(self) -> None:
        """Fit the descriptor scaler on the training part; forget codes it does not hold."""
        part = self.data.graphs.batch(self.rows)
        self.model.forget_unseen(
            torch.from_numpy(part.atom_codes), torch.from_numpy(part.bond_codes)
        )
        self.descriptors: NDArray[np.float32] | None = None
        self.scaler: DescriptorScaler | None = None
        if self.data.descriptors is not None:
            self.scaler = DescriptorScaler.fit(self.data.descriptors[self.rows])
            self.descriptors = self.scaler.transform(self.data.descriptors)

    def _fit_targets(self) -> None:
        """Standardise regression targets by the training part; classes stay as they are."""
        y = self.data.values
        shift = np.zeros(y.shape[1], dtype=np.float32)
        scale = np.ones(y.shape[1], dtype=np.float32)
        for t in range(y.shape[1]):
            seen = y[self.rows, t]
            seen = seen[np.isfinite(seen)]
            if self.data.is_class[t] or seen.size == 0:
                continue
            shift[t] = seen.mean()
            spread = seen.std()
            # A constant target has no spread to divide by; its residuals are all zero. What
            # float32 cannot tell from constant beside its mean counts as constant.
            scale[t] = spread if spread > 1e-6 * abs(float(shift[t])) else 1.0
        head = self.model.head
        head.shift.copy_(torch.from_numpy(shift))
        head.scale.copy_(torch.from_numpy(scale))
        self.present = np.isfinite(y).astype(np.float32)
        self.targets = np.where(np.isfinite(y), (y - shift) / scale, 0.0).astype(np.float32)

    def _batch(self, index: NDArray[np.int64]) -> GraphBatch:
        extra = None if self.descriptors is None else self.descriptors[index]
        return GraphBatch.from_arrays(self.data.graphs.batch(index), extra, self.device)

    def run_epoch(self) -> float:
        """Train for one epoch and return the mean loss."""
        self.epoch += 1
        torch.manual_seed(self._seed(self.epoch))
        order = np.random.default_rng(self._seed(self.epoch)).permutation(self.rows)
        size, n_steps = self.config.batch_size, self.steps_per_epoch * self.config.epochs
        self.model.train()
        total = torch.zeros((), device=self.device)
        for k in range(self.steps_per_epoch):
            index = order[k * size : (k + 1) * size]
            rate = learning_rate((self.epoch - 1) * self.steps_per_epoch + k, n_steps, self.config)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            y = torch.from_numpy(self.targets[index]).to(self.device)
            present = torch.from_numpy(self.present[index]).to(self.device)
            z = self.model.standardised(self._batch(index))
            loss = masked_loss(z, y, present, self.is_class)
            self.optimizer.zero_grad(set_to_none=False)  # the gradients are views
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.flat, self.config.clip)
            self.optimizer.step()
            total += loss.detach() * len(index)
        self.loss = float(total) / max(1, len(order))
        # An infinite gradient of the last step would leave a finite loss behind it.
        finite = all(bool(torch.isfinite(flat).all()) for flat in self.flat)
        if not (math.isfinite(self.loss) and finite):
            raise MolscoreError(
                f"expert {self.expert}: the training loss became {self.loss} in epoch "
                f"{self.epoch}; try a lower learning rate"
            )
        return self.loss

    @torch.no_grad()
    def predict(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return outputs [m, n_targets] for the given rows."""
        self.model.eval()
        parts = [
            self.model(self._batch(rows[i : i + EVAL_BATCH])).cpu().numpy()
            for i in range(0, len(rows), EVAL_BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.data.n_targets), np.float32)

    def result(self) -> ExpertResult:
        """Return the trained expert and its predictions on the rows it never saw."""
        weights = {k: v.detach().cpu().numpy().copy() for k, v in self.model.state_dict().items()}
        return ExpertResult(weights, self.held_out, self.predict(self.held_out), self.loss)

    def checkpoint(self) -> Checkpoint:
        """Return what is needed to go on from here."""
        return Checkpoint(
            epoch=self.epoch,
            loss=self.loss,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict()["state"],
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.epoch, self.loss = checkpoint.epoch, checkpoint.loss
        self.model.load_state_dict(checkpoint.model)
        state = self.optimizer.state_dict()
        state["state"] = checkpoint.optimizer
        self.optimizer.load_state_dict(state)


def train_until(
    trainer: ExpertTrainer,
    epoch: int,
    *,
    checkpoint_path: Path | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float],
) -> None:
    """Train to the end of an epoch, saving a checkpoint every few seconds and there.

    Args:
        trainer: the expert to train.
        epoch: to stop behind.
        checkpoint_path: where to keep the checkpoint; one that is there is continued.
        progress: told after every epoch, and where it goes on from.
        clock: seconds, monotonic; how often a checkpoint is due.
    """
    if checkpoint_path is not None and checkpoint_path.exists():
        trainer.restore(load_checkpoint(checkpoint_path))
        if progress is not None:
            progress(trainer.epoch, trainer.loss)
    saved = clock()
    while trainer.epoch < epoch:
        loss = trainer.run_epoch()
        is_due = clock() - saved >= CHECKPOINT_SECONDS or trainer.epoch == epoch
        if checkpoint_path is not None and is_due:
            save_checkpoint(checkpoint_path, trainer.checkpoint())
            saved = clock()
        if progress is not None:
            progress(trainer.epoch, loss)

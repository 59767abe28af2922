"""A training run from table to bundle."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.chem.policy import ChemPolicy
from molscore.data.targets import LabelledTable
from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig
from molscore.nn.devices import resolve_device
from molscore.train.blend import Joined, join, join_blend
from molscore.train.config import TrainConfig
from molscore.train.folder import RunConfig, RunFolder
from molscore.train.job import Job, ProgressCallback, TrainResult, carry_out, run_config
from molscore.train.listing import Listing, read_excluded
from molscore.train.log import Log, RunLog
from molscore.train.messages import describe_start, say_what_is_used
from molscore.train.places import check_places
from molscore.train.prepare import Prepared, prepare
from molscore.train.result import ExpertResult
from molscore.train.start import Start
from molscore.train.trees import require_trees


def run_training(
    table: LabelledTable,
    *,
    output: Path,
    run_dir: Path,
    policy: ChemPolicy = ChemPolicy(),
    model: ModelConfig = ModelConfig(),
    train: TrainConfig = TrainConfig(),
    folds: NDArray[np.int64] | None = None,
    workers: int = 0,
    device: str = "cpu",
    force: bool = False,
    resume: bool = False,
    start: Start | None = None,
    exclude: Sequence[Listing] = (),
    structures: bool = True,
    log: Log = lambda text: None,
    progress: ProgressCallback | None = None,
) -> TrainResult:
    """Train K x R experts on a table and write one bundle.

    Args:
        table: molecules and targets.
        output: the `.molscore` file to write.
        run_dir: the run folder (`molscore.train.folder`).
        policy: standardisation of molecules.
        model: architecture of an expert.
        train: schedule and cross-validation.
        folds: int64, the fold of every row of the table, numbered from 0; replaces
            `train.split` and `train.folds`.
        workers: processes at a time; 0 takes the available CPUs.
        device: `cpu`, `cuda`, `mps` or `auto`.
        force: replace an existing bundle and an existing run.
        resume: go on with the run in `run_dir`.
        start: the model the experts start from; its architecture and standardisation hold.
        exclude: tables whose structures are left out.
        structures: whether the bundle may carry the structures of the table.
        log: told one plain line at a time.
        progress: told (epochs done, epochs in all), over all experts; the trees of a target
            count as one.

    Raises:
        ConfigError: when a file or run is in the way, or the run to resume is another one.
        InputError: when the table does not allow training, or one to leave out has no structure.
        MolscoreError: when a training process fails.
    """
    folder = RunFolder(run_dir)
    log = RunLog(folder, log)
    check_places(output, folder, force=force, resume=resume)
    for text in table.notes:
        log(f"{table.name}: {text}")
    if start is not None:
        model, policy = start.settle(model, policy)
    elif train.freeze:
        raise ConfigError("--freeze trains the head of another model: it needs --from BUNDLE")
    device = check_settings(model, train, len(table.targets), device)
    if folds is not None:
        train = dataclasses.replace(train, split="file", folds=int(folds.max()) + 1)
    prepared = prepare(
        table,
        policy=policy,
        split=train.split,
        n_folds=train.folds,
        seed=train.seed,
        descriptors=model.takes_descriptors,
        workers=workers,
        folds=folds,
        exclude=read_excluded(exclude, policy, log),
    )
    train = dataclasses.replace(train, folds=prepared.counts["folds"])
    say_what_is_used(table, prepared, log, excluding=bool(exclude))
    known = None if start is None else start.structures.seen(prepared.keys)
    if start is not None and known is not None:
        log(describe_start(start, known))
    config = run_config(
        table,
        prepared,
        policy=policy,
        model=model,
        train=train,
        device=device,
        start_sha256="" if start is None else start.sha256,
        structures=structures,
    )
    job = Job(
        table=table,
        prepared=prepared,
        config=config,
        join=_join,
        output=output,
        folder=folder,
        workers=workers,
        force=force,
        resume=resume,
        log=log,
        progress=progress,
        start=() if start is None else start.experts,
        known=known,
        inherited=None if start is None else start.structures,
        origin=_origin(start, known, exclude),
    )
    return carry_out(job)


def check_settings(model: ModelConfig, train: TrainConfig, n_targets: int, device: str) -> str:
    """Refuse what cannot be trained before anything is; return the torch device to train on."""
    train.used_by(model)
    if model.has_trees:
        require_trees(train, n_targets)
    if "graph" in model.kinds:
        return resolve_device(device)
    if device not in ("auto", "cpu"):
        raise ConfigError(f"--device {device} belongs to a network: trees train on the CPU")
    return "cpu"


def _join(config: RunConfig, prepared: Prepared, results: Sequence[ExpertResult]) -> Joined:
    n, repeats = config.train.n_experts, config.train.repeats
    if config.model.blend:
        return join_blend(prepared.data, results[:n], results[n:], repeats)
    return join(prepared.data, results, repeats)


def _origin(
    start: Start | None, known: NDArray[np.bool_] | None, exclude: Sequence[Listing]
) -> dict[str, Any]:
    """Return what a manifest says of other models and tables that had a part in this one."""
    origin: dict[str, Any] = {}
    if start is not None and known is not None:
        origin["start"] = {
            "name": start.name,
            "sha256": start.sha256,
            "rows_it_was_trained_on": int(known.sum()),
        }
    if exclude:
        origin["excluded"] = [{"table": e.name, "sha256": e.sha256} for e in exclude]
    return origin

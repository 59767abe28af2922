"""A training run from table to bundle."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import molscore
from molscore.bundle.structures import STRUCTURES, hash_structures, seen
from molscore.bundle.writer import save_bundle
from molscore.chem.features import FEATURIZER_VERSION
from molscore.chem.policy import ChemPolicy
from molscore.cpus import available_cpus
from molscore.data.targets import LabelledTable
from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig
from molscore.nn.devices import resolve_device
from molscore.train.assess import metrics_csv, oof_csv
from molscore.train.blend import Joined, join, join_blend
from molscore.train.config import TrainConfig
from molscore.train.exclude import Excluded
from molscore.train.expert import ExpertResult
from molscore.train.folder import SKELETON, RunConfig, RunFolder
from molscore.train.log import Log, RunLog
from molscore.train.messages import (
    describe_experts,
    describe_length,
    describe_start,
    say_what_is_used,
)
from molscore.train.places import check_places
from molscore.train.pool import train_experts
from molscore.train.prepare import Prepared, prepare
from molscore.train.provenance import build_manifest
from molscore.train.start import Start
from molscore.train.trees import require_trees

ProgressCallback = Callable[[int, int | None], None]


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainResult:
    """What a run left.

    Attributes:
        bundle: the model file.
        run_dir: the run folder.
        sha256: of the model file.
        metrics: cross-validation, see `molscore.train.assess.assess`; empty without folds.
        prepared: the data used and what was left out.
        warnings: what the user should know.
    """

    bundle: Path
    run_dir: Path
    sha256: str
    metrics: dict[str, Any]
    prepared: Prepared
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        means = {
            name: {k: v if v is None else float(f"{v:.4g}") for k, v in of_target["mean"].items()}
            for name, of_target in self.metrics.items()
        }
        return (
            f"TrainResult(bundle={str(self.bundle)!r}, run_dir={str(self.run_dir)!r}, "
            f"sha256={self.sha256[:12]!r}, means over folds={means})"
        )


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
    exclude: Sequence[Excluded] = (),
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
        workers: training processes at a time; 0 takes the available CPUs.
        device: `cpu`, `cuda`, `mps` or `auto`.
        force: replace an existing bundle and an existing run.
        resume: go on with the run in `run_dir`.
        start: the model the experts start from; its architecture and standardisation hold.
        exclude: tables whose structures are left out.
        log: told one plain line at a time.
        progress: told (epochs done, epochs in all), over all experts; the trees of a target
            count as one.

    Raises:
        ConfigError: when a file or run is in the way, or the run to resume is another one.
        InputError: when the table does not allow training.
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
    device = _check_settings(model, train, len(table.targets), device)
    if folds is not None:
        train = dataclasses.replace(train, split="file", folds=int(folds.max()) + 1)
    prepared = prepare(
        table,
        policy=policy,
        split=train.split,
        n_folds=train.folds,
        seed=train.seed,
        descriptors=model.takes_descriptors,
        folds=folds,
        exclude=frozenset[str]().union(*(excluded.keys(policy) for excluded in exclude)),
    )
    train = dataclasses.replace(train, folds=prepared.counts["folds"])
    say_what_is_used(table, prepared, log)
    config = RunConfig(
        molscore_version=molscore.__version__,
        featurizer_version=FEATURIZER_VERSION,
        data_sha256=prepared.data.digest(),
        targets=table.targets,
        policy=policy,
        model=model,
        train=train,
        device=device,
        start_sha256="" if start is None else start.sha256,
    )
    known = None if start is None else seen(prepared.keys, start.structures)
    if start is not None and known is not None:
        log(describe_start(start, known))
    with folder.hold():
        # Another run may have begun, or ended, since the first look.
        check_places(output, folder, force=force, resume=resume)
        done = _open_folder(folder, config, prepared, start, resume=resume, log=log)
        log.start_writing()
        waiting = [e for e in range(config.n_experts) if e not in done]
        _train_waiting(folder, waiting, config, workers=workers, log=log, progress=progress)
        experts = [folder.read_expert(e) for e in range(config.n_experts)]
        joined = _join(config, prepared, [result for result, _ in experts])
        metrics = _write_assessment(folder, table, prepared, joined, known)
        # The trees of a blend take all descriptors, and its networks the same ones or none.
        experts = experts[-train.n_experts :]
        arrays: dict[str, Any] = {STRUCTURES: hash_structures(prepared.keys)}
        for i, (_, scaler) in enumerate(experts):
            if scaler is not None:
                arrays |= {f"descriptors/{i}/{k}": v for k, v in scaler.to_arrays().items()}
        sha256 = save_bundle(
            output,
            build_manifest(
                table, prepared, config, policy, metrics, output, _origin(start, known, exclude)
            ),
            experts=joined.experts,
            onnx=folder.skeleton_path.read_bytes(),
            arrays=arrays,
            force=force,
        )
        folder.remove_partial_files()
    log(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB, sha256 {sha256[:12]})")
    return TrainResult(
        bundle=output,
        run_dir=run_dir,
        sha256=sha256,
        metrics=metrics,
        prepared=prepared,
        warnings=prepared.warnings,
    )


def _open_folder(
    folder: RunFolder,
    config: RunConfig,
    prepared: Prepared,
    start: Start | None,
    *,
    resume: bool,
    log: Log,
) -> set[int]:
    """Start or re-open the run folder; return the experts that are done."""
    if not resume:
        folder.clear()
        folder.start(config, prepared.data, () if start is None else start.experts)
        return set()
    folder.remove_partial_files()
    there = folder.read_config()
    if there != config:
        differ = _differences(there.to_dict(), config.to_dict())
        raise ConfigError(
            f"--resume: the run in {folder.path} was started with other settings or data: "
            + "; ".join(differ[:5])
        )
    done = {e for e in range(config.n_experts) if folder.expert(e).exists()}
    log(f"resuming: {len(done)} of {config.n_experts} experts are done")
    return done


def _differences(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> list[str]:
    out: list[str] = []
    for key, was in a.items():
        if isinstance(was, dict):
            out += _differences(was, b[key], f"{prefix}{key}.")
        elif was != b[key]:
            out.append(f"{prefix}{key} was {was!r}, is now {b[key]!r}")
    return out


def _train_waiting(
    folder: RunFolder,
    waiting: Sequence[int],
    config: RunConfig,
    *,
    workers: int,
    log: Log,
    progress: ProgressCallback | None,
) -> None:
    train, device = config.train, config.device
    # The graph last: it is made while the last experts train, where a process has nothing else.
    tasks = [str(expert) for expert in waiting]
    tasks += [] if folder.skeleton_path.exists() else [SKELETON]
    if not tasks:
        return
    # One process a GPU: experts would only queue for it.
    n_workers = 1 if device != "cpu" else (workers or max(1, available_cpus() // train.threads))
    n_workers = max(1, min(n_workers, len(waiting)))
    if waiting:
        log(
            f"training {describe_experts(config, waiting)} "
            f"in {n_workers} process{'es' * (n_workers != 1)} on {device}"
        )
    total = sum(map(config.n_steps, range(config.n_experts)))
    steps = dict.fromkeys(waiting, 0)
    before = total - sum(map(config.n_steps, waiting))

    def report(expert: int, step: int, loss: float) -> None:
        steps[expert] = step
        if progress is not None:
            progress(before + sum(steps.values()), total)
        if step == config.n_steps(expert):
            log(f"expert {expert}: {describe_length(config, expert)}, training loss {loss:.4f}")

    train_experts(
        folder.path,
        tasks,
        n_workers=n_workers,
        threads=train.threads,
        device=device,
        report=report,
    )


def _check_settings(model: ModelConfig, train: TrainConfig, n_targets: int, device: str) -> str:
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
    start: Start | None, known: NDArray[np.bool_] | None, exclude: Sequence[Excluded]
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


def _write_assessment(
    folder: RunFolder,
    table: LabelledTable,
    prepared: Prepared,
    joined: Joined,
    known: NDArray[np.bool_] | None,
) -> dict[str, Any]:
    if not (prepared.data.folds >= 0).any():
        return {}
    metrics = joined.metrics(prepared.data, table.targets, known)
    folder.write_text("oof.csv", oof_csv(prepared.data, table.targets, joined.oof))
    folder.write_text("metrics.csv", metrics_csv(metrics))
    folder.write_json("metrics.json", metrics)
    return metrics

"""The part of a run that comes after its data: train, judge, write the bundle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import molscore
from molscore.bundle.structures import KEY_BYTES, KnownStructures
from molscore.bundle.writer import save_bundle
from molscore.chem.features import FEATURIZER_VERSION
from molscore.cpus import available_cpus
from molscore.data.targets import LabelledTable
from molscore.errors import ConfigError
from molscore.train.assess import metrics_csv, oof_csv
from molscore.train.blend import Joined
from molscore.train.folder import RunConfig, RunFolder
from molscore.train.log import RunLog
from molscore.train.messages import describe_experts, describe_length
from molscore.train.places import check_places
from molscore.train.pool import train_experts
from molscore.train.prepare import Prepared
from molscore.train.provenance import build_manifest
from molscore.train.result import ExpertResult
from molscore.train.shares import GRAPH_STEPS, share_out
from molscore.train.start import Weights
from molscore.train.trust import Fitted, fit_trust

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


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run that is ready to begin.

    Attributes:
        table: molecules and targets.
        prepared: what is made of them.
        config: what decides the outcome.
        join: makes a bundle of the trained experts, and judges it.
        output: the `.molscore` file to write.
        folder: the run folder.
        workers: training processes at a time; 0 takes the available CPUs.
        force: replace an existing bundle and an existing run.
        resume: go on with the run in `folder`.
        log: told one plain line at a time.
        progress: told (epochs done, epochs in all).
        inherited: the structures that the model to start from, or to learn from, was trained
            on; the new one has learned of them too.
        start: weights each expert starts from, taken in turn; none for a start from scratch.
        known: bool [n], the rows whose structures the model to start from was trained on.
        origin: other models and tables that had a part in this one, for its manifest.
    """

    table: LabelledTable
    prepared: Prepared
    config: RunConfig
    join: Callable[[RunConfig, Prepared, Sequence[ExpertResult]], Joined]
    output: Path
    folder: RunFolder
    workers: int
    force: bool
    resume: bool
    log: RunLog
    progress: ProgressCallback | None
    inherited: KnownStructures | None
    start: Sequence[Weights] = ()
    known: NDArray[np.bool_] | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)


def run_config(table: LabelledTable, prepared: Prepared, **parts: Any) -> RunConfig:
    """Return the configuration of a run with the data it is about; `parts` are its other fields."""
    return RunConfig(
        molscore_version=molscore.__version__,
        featurizer_version=FEATURIZER_VERSION,
        data_sha256=prepared.data.digest(),
        targets=table.targets,
        **parts,
    )


def carry_out(job: Job) -> TrainResult:
    """Train the experts of a job that are not there yet, judge them, and write the bundle."""
    folder, config, log, prepared = job.folder, job.config, job.log, job.prepared
    with folder.hold():
        # Another run may have begun, or ended, since the first look.
        check_places(job.output, folder, force=job.force, resume=job.resume)
        done = _open_folder(job)
        log.start_writing()
        _train_waiting(job, [e for e in range(config.n_experts) if e not in done])
        experts = [folder.read_expert(e) for e in range(config.n_experts)]
        joined = job.join(config, prepared, [result for result, _ in experts])
        fitted = fit_trust(prepared, job.table.targets, joined.oof, structures=config.structures)
        metrics = _write_assessment(job, joined, fitted)
        # The last experts are those that ship: the trees of a blend, which take all descriptors
        # where its networks take the same ones or none; and the student made of all experts.
        secret = b"" if config.structures else bytes.fromhex(config.data_sha256)[:KEY_BYTES]
        known = KnownStructures.of(prepared.keys, secret).joined(job.inherited)
        arrays: dict[str, Any] = {**known.to_arrays(), **fitted.arrays}
        for i, (_, scaler) in enumerate(experts[-len(joined.experts) :]):
            if scaler is not None:
                arrays |= {f"descriptors/{i}/{k}": v for k, v in scaler.to_arrays().items()}
        sha256 = save_bundle(
            job.output,
            build_manifest(job.table, prepared, config, metrics, job.output, job.origin),
            experts=joined.experts,
            onnx=folder.skeleton_path.read_bytes(),
            arrays=arrays,
            force=job.force,
        )
        folder.remove_partial_files()
    log(f"wrote {job.output} ({job.output.stat().st_size / 1e6:.1f} MB, sha256 {sha256[:12]})")
    return TrainResult(
        bundle=job.output,
        run_dir=folder.path,
        sha256=sha256,
        metrics=metrics,
        prepared=prepared,
        warnings=prepared.warnings,
    )


def _open_folder(job: Job) -> set[int]:
    """Start or re-open the run folder; return the experts that are done."""
    folder, config = job.folder, job.config
    if not job.resume:
        folder.clear()
        folder.start(config, job.prepared.data, job.start)
        return set()
    folder.remove_partial_files()
    there = folder.read_config()
    if there != config:
        differ = _differences(there.to_dict(), config.to_dict())
        # Folds are part of the data: another seed or split is cause enough for another hash.
        if any(text.startswith("train.") for text in differ):
            differ = [text for text in differ if not text.startswith("data_sha256 ")]
        raise ConfigError(
            f"--resume: the run in {folder.path} was started with other settings or data: "
            + "; ".join(differ[:5])
        )
    done = {e for e in range(config.n_experts) if folder.expert(e).exists()}
    begun = sum(folder.checkpoint(e).exists() for e in range(config.n_experts) if e not in done)
    job.log(
        f"resuming: {len(done)} of {config.n_experts} {config.noun}s are done"
        + f", {begun} more begun" * (begun > 0)
    )
    return done


def _differences(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> list[str]:
    out: list[str] = []
    for key, was in a.items():
        if isinstance(was, dict):
            out += _differences(was, b[key], f"{prefix}{key}.")
        elif was != b[key]:
            out.append(f"{prefix}{key} was {was!r}, is now {b[key]!r}")
    return out


def _train_waiting(job: Job, waiting: Sequence[int]) -> None:
    folder, config, log, progress = job.folder, job.config, job.log, job.progress
    train, device = config.train, config.device
    # One process a GPU: experts would only queue for it.
    n_slots = 1 if device != "cpu" else (job.workers or max(1, available_cpus() // train.threads))
    steps = train.epochs * len(job.prepared.keys) / train.batch_size
    tasks = share_out(
        waiting,
        n_slots,
        # Trees are grown in one go.
        epochs=1 if config.model.has_trees else train.epochs,
        graph=None if folder.skeleton_path.exists() else GRAPH_STEPS / steps,
    )
    if not tasks:
        return
    n_workers = max(1, min(n_slots, len(waiting)))
    if waiting:
        log(
            f"training {describe_experts(config, waiting)} "
            f"in {n_workers} process{'es' * (n_workers != 1)} on {device}"
        )
    total = sum(map(config.n_steps, range(config.n_experts)))
    done = dict.fromkeys(waiting, 0)
    before = total - sum(map(config.n_steps, waiting))

    def report(expert: int, step: int, loss: float) -> None:
        before_it, done[expert] = done[expert], step
        if progress is not None:
            progress(before + sum(done.values()), total)
        # Two tasks of an expert that was as good as done both report its end.
        if before_it < step == config.n_steps(expert):
            length = describe_length(config, expert)
            log(f"{config.noun} {expert}: {length}, training loss {loss:.4f}")

    train_experts(
        folder.path,
        tasks,
        n_workers=n_workers,
        threads=train.threads,
        device=device,
        report=report,
    )


def _write_assessment(job: Job, joined: Joined, fitted: Fitted) -> dict[str, Any]:
    folder, data, targets = job.folder, job.prepared.data, job.table.targets
    if not (data.folds >= 0).any():
        return {}
    metrics = joined.metrics(data, targets, job.known)
    for name, figures in fitted.figures.items():
        metrics[name] |= figures
    folder.write_text("oof.csv", oof_csv(data, targets, joined.oof, job.table.values))
    folder.write_text("metrics.csv", metrics_csv(metrics))
    folder.write_json("metrics.json", metrics)
    return metrics

"""A distillation run: students learn what the experts of a bundle say, and one of them ships.

Student k learns from expert k alone, on the rows outside fold k and the transfer molecules, so
fold k tells what a student makes of new molecules: neither it nor its teacher saw their labels,
and it never saw what its teacher says of them. The student that ships learns from all experts on
all rows. Folds are those of the teacher: the same table under the same settings gives them again,
and the hash of the training data proves it.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import Bundle
from molscore.bundle.structures import KnownStructures
from molscore.data.targets import LabelledTable, Target
from molscore.errors import ConfigError
from molscore.train.assess import OutOfFold, assess
from molscore.train.blend import Joined, join
from molscore.train.data import TrainingData
from molscore.train.folder import RunConfig, RunFolder
from molscore.train.job import Job, ProgressCallback, TrainResult, carry_out, run_config
from molscore.train.listing import Listing, read_excluded
from molscore.train.log import Log, RunLog
from molscore.train.messages import say_what_is_used
from molscore.train.places import check_places
from molscore.train.prepare import Prepared, prepare
from molscore.train.result import ExpertResult
from molscore.train.run import check_settings
from molscore.train.student import StudentModel, StudentTraining
from molscore.train.teacher import TEACHER, Teacher
from molscore.train.transfer import add_transfer

AGAINST_TEACHER: Final = "against_teacher"
"""Key of the metrics: how far students are from their own teachers, out of fold."""


@dataclass(frozen=True)
class Distilled(Joined):
    """The student that ships, with the students that were judged.

    Its part `teacher` is what the experts say of their own folds.
    """

    def metrics(
        self,
        data: TrainingData,
        targets: Sequence[Target],
        known: NDArray[np.bool_] | None = None,
    ) -> dict[str, Any]:
        """Return the metrics of `assess`, those of the teacher, and the distance between them.

        The distance of classes is that of probabilities, with the metrics of a regression.
        """
        metrics = super().metrics(data, targets, known)
        (said,) = self.parts[TEACHER].predictions
        values = [dataclasses.replace(target, kind="regression", classes=()) for target in targets]
        distances = assess(dataclasses.replace(data, values=said), values, self.oof)
        for name, distance in distances.items():
            metrics[name][AGAINST_TEACHER] = {k: distance[k] for k in ("mean", "sd", "pooled")}
        return metrics


def run_distillation(
    table: LabelledTable,
    bundle: Bundle,
    *,
    output: Path,
    run_dir: Path,
    model: StudentModel = StudentModel(),
    training: StudentTraining = StudentTraining(),
    extra: Listing | None = None,
    folds: NDArray[np.int64] | None = None,
    exclude: Sequence[Listing] = (),
    workers: int = 0,
    device: str = "cpu",
    force: bool = False,
    resume: bool = False,
    log: Log = lambda text: None,
    progress: ProgressCallback | None = None,
) -> TrainResult:
    """Train a student of each expert and one of all, and write the last one as a bundle.

    Args:
        table: what the bundle was trained on.
        bundle: the teacher.
        output: the `.molscore` file to write.
        run_dir: the run folder (`molscore.train.folder`).
        model: architecture of a student.
        training: schedule of a student.
        extra: molecules whose values the teacher supplies.
        folds: int64, the fold of every row of the table, where the teacher was given them.
        exclude: tables whose structures the teacher did not learn from; its students learn
            nothing of them either.
        workers: processes at a time; 0 takes the available CPUs.
        device: `cpu`, `cuda`, `mps` or `auto`.
        force: replace an existing bundle and an existing run.
        resume: go on with the run in `run_dir`.
        log: told one plain line at a time.
        progress: told (epochs done, epochs in all), over all students.

    Raises:
        ConfigError: when a file or run is in the way, the run to resume is another one, or the
            bundle cannot teach.
        InputError: when the table is not the one the bundle was trained on.
        MolscoreError: when a training process fails.
    """
    folder = RunFolder(run_dir)
    log = RunLog(folder, log)
    check_places(output, folder, force=force, resume=resume)
    teacher = Teacher.of(bundle)
    train, plain = training.schedule(teacher.train), model.plain()
    device = check_settings(plain, train, len(table.targets), device)
    excluded = read_excluded(exclude, bundle.manifest.policy, log)
    prepared = _prepare(table, teacher, model, folds, excluded, workers)
    say_what_is_used(table, prepared, log, excluding=bool(exclude))
    origin: dict[str, Any] = {TEACHER: teacher.about()}
    data = prepared.data
    if extra is not None:
        data, origin["transfer"] = add_transfer(
            data, prepared.keys, extra, bundle.manifest.policy, excluded, workers
        )
        log(f"{extra.name}: " + _describe(origin["transfer"]))
    log(f"asking {bundle.manifest.n_experts} experts for {len(data)} molecules")
    data = dataclasses.replace(data, teacher=teacher.teach(data))
    if not plain.takes_descriptors:
        data = data.without_descriptors()
    prepared = dataclasses.replace(prepared, data=data)
    known = KnownStructures.from_arrays(bundle.arrays)
    config = run_config(
        table,
        prepared,
        policy=bundle.manifest.policy,
        model=plain,
        train=train,
        device=device,
        teacher_sha256=bundle.sha256,
        # What the teacher may not carry, its student may not either.
        structures=known is None or not any(known.parts),
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
        # A teacher that does not say so was trained on this table at least, whose rows are taken.
        inherited=known,
        origin=origin,
    )
    return carry_out(job)


def _prepare(
    table: LabelledTable,
    teacher: Teacher,
    model: StudentModel,
    folds: NDArray[np.int64] | None,
    excluded: frozenset[str],
    workers: int,
) -> Prepared:
    """Return the data the teacher was trained on, or raise."""
    manifest, train = teacher.bundle.manifest, teacher.train
    if train.split == "file" and folds is None:
        raise ConfigError(
            f"{teacher.bundle.where} was trained on folds from a file: give the same --folds-file"
        )
    prepared = prepare(
        table,
        policy=manifest.policy,
        split=train.split,
        n_folds=train.folds if folds is None else int(folds.max()) + 1,
        seed=train.seed,
        descriptors=manifest.model.takes_descriptors or model.takes_descriptors,
        workers=workers,
        folds=folds,
        exclude=excluded,
    )
    data = prepared.data
    if not manifest.model.takes_descriptors:
        data = data.without_descriptors()
    teacher.refuse_other_data(data, table.name, table.sha256)
    warnings = (*prepared.warnings, *teacher.warnings())
    return dataclasses.replace(prepared, warnings=warnings)


def _join(config: RunConfig, prepared: Prepared, results: Sequence[ExpertResult]) -> Joined:
    """Join what the students of the folds say of them, and take the last student to ship."""
    data = prepared.data
    judged = join(data, results[:-1], n_repeats=1)
    said = np.full((1, len(data), data.n_targets), np.nan)
    if data.teacher is not None:
        for fold, outputs in enumerate(data.teacher[:-1]):
            rows = data.folds == fold
            said[0, rows] = outputs[rows]
    weights = dict(results[-1].weights)
    return Distilled([weights], judged.oof, {TEACHER: OutOfFold(said)})


def _describe(counts: dict[str, Any]) -> str:
    """Return how many transfer molecules are used, and why others are not."""
    return (
        f"{counts['rows_read']} rows read, {counts['used']} used, {counts['unusable_smiles']} "
        f"with an unusable SMILES, {counts['in_table_or_twice']} of structures that are in the "
        "table or came before"
        + f", {counts['excluded']} of excluded ones"
        * bool(counts["excluded"])
    )

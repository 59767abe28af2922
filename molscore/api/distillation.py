"""Distil a model into a small and fast one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from molscore.api.options import build_configs
from molscore.api.training import default_run_dir, log_line, training_extra
from molscore.bundle.reader import load_bundle
from molscore.cpus import worker_count
from molscore.data.outputs import refuse_inputs
from molscore.data.records import TableOptions
from molscore.data.targets import read_labelled
from molscore.errors import ConfigError
from molscore.train.student import StudentModel, StudentTraining

if TYPE_CHECKING:
    import pandas as pd

    from molscore.train.job import TrainResult


def distill(
    model: str | Path,
    table: "str | Path | pd.DataFrame",
    *,
    output: str | Path | None = None,
    run_dir: str | Path | None = None,
    unlabelled: str | Path | None = None,
    folds_file: str | Path | None = None,
    exclude: str | Path | Sequence[str | Path] = (),
    workers: int = 0,
    device: str = "cpu",
    force: bool = False,
    resume: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> "TrainResult":
    """Train a small network to say what a model says, and write it as a bundle of its own.

    Student k learns from expert k alone and is judged on fold k, which neither of them was
    trained on. The student that ships learns from all experts.

    Args:
        model: path of the `.molscore` file to learn from.
        table: the table it was trained on: a file, "-" for stdin, or a DataFrame.
        output: the `.molscore` file to write; `MODEL-student.molscore` in the working directory
            when not given.
        run_dir: folder for out-of-fold predictions, metrics, configuration and checkpoints;
            `OUTPUT-run` beside the output when not given.
        unlabelled: a file of more molecules to learn from; the model says their values.
        folds_file: the folds file the model was trained with, if it was.
        exclude: the table or tables whose structures it was trained without.
        workers: processes at a time; 0 takes the available CPUs.
        device: `cpu`, `cuda`, `mps` or `auto`.
        force: replace an existing bundle and run.
        resume: go on with the run in `run_dir`.
        progress: told (epochs done, epochs in all).
        **options: fields of `TableOptions`, `StudentModel` and `StudentTraining`, such as
            `smiles_column`, `block`, `width`, `plan`, `epochs`, `seed`.

    Returns:
        Where the student is, and its metrics: against the measured values, and under `teacher`
        and `against_teacher` those of the experts, and of the distance from them.

    Raises:
        BundleError: when the model cannot be used.
        ConfigError: on options that cannot be used, or files in the way.
        InputError: when the table is not the one the model was trained on.
        MolscoreError: when a training process fails.
    """
    how, student, training = build_configs(options, TableOptions, StudentModel, StudentTraining)
    return distill_model(
        model,
        table,
        output=Path(output) if output is not None else default_student(model),
        run_dir=None if run_dir is None else Path(run_dir),
        unlabelled=unlabelled,
        folds_file=folds_file,
        exclude=[exclude] if isinstance(exclude, str | Path) else exclude,
        table_options=how,
        student=student,
        training=training,
        workers=workers,
        device=device,
        force=force,
        resume=resume,
        progress=progress,
    )


def distill_model(
    model: str | Path,
    table: "str | Path | pd.DataFrame",
    *,
    output: Path,
    run_dir: Path | None,
    unlabelled: str | Path | None,
    folds_file: str | Path | None,
    exclude: Sequence[str | Path],
    table_options: TableOptions,
    student: StudentModel,
    training: StudentTraining,
    workers: int,
    device: str,
    force: bool,
    resume: bool,
    progress: Callable[[int, int | None], None] | None,
) -> "TrainResult":
    """Distil with configurations that are built already; see `distill`."""
    worker_count(workers)
    if str(table) == "-" and str(unlabelled) == "-":
        raise ConfigError("the table and the unlabelled molecules cannot both be standard input")
    refuse_inputs(
        output,
        model=model,
        table=table,
        unlabelled=unlabelled,
        folds_file=folds_file,
        table_to_exclude=list(exclude),
    )
    with training_extra():
        from molscore.data.splits import read_folds_file  # noqa: PLC0415 (may need the extra)
        from molscore.train.distillation import run_distillation  # noqa: PLC0415
        from molscore.train.folder import RunFolder  # noqa: PLC0415
        from molscore.train.listing import read_listing  # noqa: PLC0415
        from molscore.train.places import check_places  # noqa: PLC0415

        run_dir = run_dir or default_run_dir(output)
        check_places(output, RunFolder(run_dir), force=force, resume=resume)
        bundle = load_bundle(model)
        labelled = read_labelled(table, table_options, targets=bundle.manifest.targets)
        return run_distillation(
            labelled,
            bundle,
            output=output,
            run_dir=run_dir,
            model=student,
            training=training,
            extra=read_listing(unlabelled) if unlabelled is not None else None,
            folds=read_folds_file(folds_file, len(labelled)) if folds_file else None,
            exclude=[read_listing(path) for path in exclude],
            workers=workers,
            device=device,
            force=force,
            resume=resume,
            log=log_line,
            progress=progress,
        )


def default_student(model: str | Path) -> Path:
    """Return where the student of a model goes: `MODEL-student.molscore` in the working folder."""
    return Path(f"{Path(model).stem}-student.molscore")

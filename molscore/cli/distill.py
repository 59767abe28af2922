"""`molscore distill`."""

from pathlib import Path
from typing import Annotated

import typer

from molscore.cli import reports
from molscore.cli.options import (
    Device,
    ForceOption,
    ResumeOption,
    RunDirOption,
    WorkersOption,
    configured,
)
from molscore.cli.progress import progress_bar
from molscore.data.records import TableOptions
from molscore.train.student import StudentModel, StudentTraining


@configured(training=StudentTraining, student=StudentModel, table=TableOptions)
def distill(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="BUNDLE", readable=False, help="Model to learn from, a .molscore file."
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Table it was trained on; - is standard input."),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="BUNDLE",
            readable=False,
            help="Student to write; NAME-student.molscore in the working directory, after the "
            "model's file, when not given.",
        ),
    ] = None,
    run_dir: RunDirOption = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            "--unlabelled",
            metavar="MOLECULES",
            help="File of more molecules to learn from, in any format; the model says their "
            "values. Structures of FILE in it are left out.",
        ),
    ] = None,
    folds_file: Annotated[
        Path | None,
        typer.Option(
            "--folds-file",
            metavar="FILE",
            readable=False,
            help="The folds file the model was trained with, if it was.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="The table whose structures the model was trained without; give it again for "
            "several.",
        ),
    ] = None,
    workers: WorkersOption = 0,
    device: Annotated[Device, typer.Option("--device", help="Where to train.")] = "cpu",
    force: ForceOption = False,
    resume: ResumeOption = False,
    training: StudentTraining,
    student: StudentModel,
    table: TableOptions,
) -> None:
    """Train one small network to say what a model says, for screening.

    Needs the table the model was trained on. Student k learns from expert k alone, outside fold
    k, and is judged there: these are honest errors. The student that ships learns from all
    experts.
    """
    from molscore.api.distillation import default_student, distill_model  # noqa: PLC0415 (--help)
    from molscore.api.training import default_run_dir  # noqa: PLC0415

    reports.announce_terminal(file)
    output = output or default_student(model)
    place = run_dir or default_run_dir(output)
    with reports.resume_hint(place), progress_bar("distilling") as progress:
        result = distill_model(
            model,
            file,
            output=output,
            run_dir=run_dir,
            unlabelled=unlabelled,
            folds_file=folds_file,
            exclude=exclude or [],
            table_options=table,
            student=student,
            training=training,
            workers=workers,
            device=device,
            force=force,
            resume=resume,
            progress=progress,
        )
    reports.close_training(result)

"""`molscore train`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from molscore.chem.policy import ChemPolicy
from molscore.cli import reports
from molscore.cli.options import (
    Device,
    ForceOption,
    ResumeOption,
    RunDirOption,
    TableArgument,
    TargetOption,
    WorkersOption,
    configured,
    given,
)
from molscore.cli.progress import progress_bar
from molscore.data.records import TableOptions
from molscore.nn.config import ModelConfig
from molscore.train.config import FINE_TUNING, TrainConfig

_FINE_TUNING = " and ".join(
    f"--{name.replace('_', '-')} {value}" for name, value in FINE_TUNING.items()
)
Task = Literal["auto", "regression", "classification"]
Transform = Literal["none", "log10", "ln", "log1p"]


@configured(schedule=TrainConfig, architecture=ModelConfig, policy=ChemPolicy, table=TableOptions)
def train(
    context: typer.Context,
    file: TableArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="BUNDLE",
            readable=False,
            help="Model to write; NAME.molscore in the working directory, after the table's "
            "name, when not given.",
        ),
    ] = None,
    run_dir: RunDirOption = None,
    target: TargetOption = None,
    task: Annotated[
        Task, typer.Option("--task", help="What targets are; auto looks at their values.")
    ] = "auto",
    transform: Annotated[
        Transform,
        typer.Option("--transform", help="What is learned of a value; predictions undo it."),
    ] = "none",
    unit: Annotated[
        str, typer.Option("--unit", metavar="TEXT", help="Unit of the targets, for people.")
    ] = "",
    note: Annotated[
        str,
        typer.Option(
            "--note", metavar="TEXT", help="Endpoint note, such as 'water, pH not controlled'."
        ),
    ] = "",
    folds_file: Annotated[
        Path | None,
        typer.Option(
            "--folds-file",
            metavar="FILE",
            readable=False,
            help="Table with the columns row, fold; replaces --split and --folds.",
        ),
    ] = None,
    workers: WorkersOption = 0,
    device: Annotated[Device, typer.Option("--device", help="Where to train.")] = "cpu",
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail when a row cannot be used, instead of leaving it out."),
    ] = False,
    force: ForceOption = False,
    resume: ResumeOption = False,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="BUNDLE",
            readable=False,
            help="Start from the networks of this model, all but their heads; its architecture "
            f"and standardisation hold, and {_FINE_TUNING} unless given.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="Do not learn from structures in this table; give it again for several.",
        ),
    ] = None,
    structures: Annotated[
        bool,
        typer.Option(
            "--structures/--no-structures",
            help="Let the model carry the structures of FILE, to find the nearest of a molecule; "
            "else it has hashes of them alone.",
        ),
    ] = True,
    schedule: TrainConfig,
    architecture: ModelConfig,
    policy: ChemPolicy,
    table: TableOptions,
) -> None:
    """Train a model on a table of SMILES and measured values.

    Makes one expert a fold, each blind to that fold; equal structures share a fold. The
    experts together are the model. Their out-of-fold predictions are the cross-validation.
    """
    from molscore.api.training import (  # noqa: PLC0415 (--help)
        default_output,
        default_run_dir,
        train_model,
    )

    reports.announce_terminal(file)
    output = output or default_output(file)
    with (
        reports.resume_hint(run_dir or default_run_dir(output)),
        progress_bar("training") as progress,
    ):
        result = train_model(
            file,
            output=output,
            run_dir=run_dir,
            targets=target,
            task=task,
            transform=transform,
            unit=unit,
            note=note,
            folds_file=folds_file,
            table_options=table,
            policy=policy,
            model=architecture,
            schedule=schedule,
            given=given(context),
            workers=workers,
            device=device,
            strict=strict,
            force=force,
            resume=resume,
            start=start,
            exclude=exclude or [],
            structures=structures,
            progress=progress,
        )
    reports.close_training(result)

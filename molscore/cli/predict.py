"""`molscore predict`."""

from pathlib import Path
from typing import Annotated

import typer

from molscore.bundle.shipped import DEFAULT_MODEL
from molscore.cli import reports
from molscore.cli.options import (
    BatchSizeOption,
    DeviceOption,
    EngineOption,
    ForceOption,
    OutputFormatOption,
    OutputOption,
    StrictOption,
    TableArgument,
    WorkersOption,
    configured,
)
from molscore.cli.progress import progress_bar
from molscore.data.records import TableOptions
from molscore.trust.options import TrustOptions


@configured(table=TableOptions, trust=TrustOptions)
def predict(
    file: TableArgument,
    *,
    model: Annotated[
        list[Path],
        typer.Option(
            "--model",
            metavar="BUNDLE",
            readable=False,
            help="Model to use: a .molscore file, or the name of one that `molscore models` lists; "
            "give it again for several in one pass.",
        ),
    ] = (Path(DEFAULT_MODEL),),  # type: ignore[assignment] # Typer makes it a list
    output: OutputOption = "-",
    output_format: OutputFormatOption = "auto",
    model_info: Annotated[
        bool,
        typer.Option(
            "--model-info", help="Add columns with the model's name and hash; jsonl always does."
        ),
    ] = False,
    workers: WorkersOption = 0,
    engine: EngineOption = "onnx",
    device: DeviceOption = "auto",
    batch_size: BatchSizeOption = 16,
    skip: Annotated[
        int,
        typer.Option("--skip", metavar="N", min=0, help="Rows of FILE left out at the beginning."),
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=0, help="Most rows to predict; all when not given."
        ),
    ] = None,
    strict: StrictOption = False,
    force: ForceOption = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the FILE.partial that a run left where it stopped.",
        ),
    ] = False,
    table: TableOptions,
    trust: TrustOptions,
) -> int:
    """Predict every row of a table.

    One row out for each row in, in the same order: the input columns untouched, then
    pred_TARGET and pred_TARGET_sd (the spread of the experts), then, where the model carries
    what they take, pred_TARGET_lo and pred_TARGET_hi (the interval), similarity, in_domain and
    domain_note, then status and error. A row that cannot be predicted keeps its place, with the
    reason.

    A run that is stopped keeps what it has written beside the output, in FILE.partial, and the
    same command with --resume goes on there.
    """
    from molscore.api.prediction import predict_table  # noqa: PLC0415 (start-up of --help)

    reports.announce_terminal(file)
    with progress_bar("predicting", output=output, unit="rows") as progress:
        summary = predict_table(
            file,
            model,
            output,
            table=table,
            trust=trust,
            output_format=output_format,
            model_info=model_info,
            engine=engine,
            device=device,
            workers=workers,
            batch_size=batch_size,
            skip=skip,
            limit=limit,
            force=force,
            resume=resume,
            progress=progress,
        )
    return reports.close_summary(summary, verb="predicted", strict=strict)

"""`molscore evaluate`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from molscore.bundle.shipped import DEFAULT_MODEL
from molscore.cli import logs, reports
from molscore.cli.option_texts import OPTION_TEXTS
from molscore.cli.options import (
    DeviceOption,
    EngineOption,
    ForceOption,
    JsonOption,
    ModelOption,
    OutputFormatOption,
    StrictOption,
    TableArgument,
    TargetOption,
    WorkersOption,
    configured,
)
from molscore.cli.progress import progress_bar
from molscore.data.records import TableOptions
from molscore.errors import ConfigError
from molscore.trust.options import TrustOptions


@configured(table=TableOptions)
def evaluate(
    file: TableArgument,
    *,
    model: ModelOption = Path(DEFAULT_MODEL),
    target: TargetOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE", help="Write predictions row by row, format by suffix."
        ),
    ] = None,
    output_format: OutputFormatOption = "auto",
    json_: JsonOption = False,
    workers: WorkersOption = 0,
    engine: EngineOption = "onnx",
    device: DeviceOption = "auto",
    strict: StrictOption = False,
    force: ForceOption = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval", metavar="SHARE", help=OPTION_TEXTS[TrustOptions]["interval"].help
        ),
    ] = TrustOptions.interval,
    table: TableOptions,
) -> int:
    """Compare a model with measured values.

    Prints the metrics of each target over all rows, and apart for structures the model was
    trained on (seen) and the others (unseen): only the latter say how good it is.
    """
    from molscore import api  # noqa: PLC0415 (start-up of --help)
    from molscore.report.text import learned_units, metric_table, trust_lines  # noqa: PLC0415

    if output == "-":
        raise ConfigError("--output - would mix rows and metrics on standard output; name a file")
    reports.announce_terminal(file)
    with progress_bar("evaluating") as progress:
        result = api.evaluate(
            model,
            file,
            target=target,
            output=output,
            output_format=output_format,
            engine=engine,
            device=device,
            workers=workers,
            force=force,
            interval=interval,
            progress=progress,
            **dataclasses.asdict(table),
        )
    if json_:
        typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        rows = [
            {"target": name, "structures": part, **metrics}
            for name, parts in result.metrics.items()
            for part, metrics in parts.items()
        ]
        lines = metric_table(rows) + learned_units(result.transforms) + trust_lines(result)
        typer.echo("\n".join(map(logs.visible, lines)))
        typer.echo(
            f"{result.n_seen} of {result.summary.n_ok} rows hold a structure "
            "the model was trained on"
        )
    return reports.close_summary(result.summary, verb="predicted", strict=strict)

"""`molscore export`."""

from pathlib import Path
from typing import Annotated

import typer

from molscore.bundle.shipped import DEFAULT_MODEL
from molscore.cli import logs
from molscore.cli.options import ForceOption, ModelOption, configured


@configured()
def export(
    *,
    model: ModelOption = Path(DEFAULT_MODEL),
    output: Annotated[
        Path,
        typer.Option("--output", metavar="FILE", readable=False, help="Graph to write, NAME.onnx."),
    ],
    half: Annotated[
        bool,
        typer.Option(
            "--half",
            help="Store weights in half precision: half the file; says what that changes.",
        ),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Write a model as one ONNX graph for other programs.

    All experts are in it. A JSON of the same name says how to feed it: inputs, the code of
    every atom and bond feature, targets and units, and worked examples.
    """
    from molscore import api  # noqa: PLC0415 (start-up of --help)

    for path in api.export(model, output, half=half, force=force):
        if not logs.state.quiet:
            logs.write_line(f"wrote {path}")

"""`molscore inspect`."""

import json
from pathlib import Path

import typer

from molscore.bundle.shipped import DEFAULT_MODEL
from molscore.cli import logs
from molscore.cli.options import JsonOption, ModelOption, configured


@configured()
def inspect(*, model: ModelOption = Path(DEFAULT_MODEL), json_: JsonOption = False) -> None:
    """Show what is in a model and where its numbers come from.

    Targets and units, architecture, standardisation, training data, cross-validation, hashes.
    The file is checked as it is before a prediction.
    """
    from molscore import api  # noqa: PLC0415 (start-up of --help)
    from molscore.report.text import describe_model  # noqa: PLC0415

    about = api.describe(model)
    if json_:
        typer.echo(json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        # Names and notes are whatever the maker of the file wrote.
        typer.echo("\n".join(map(logs.visible, describe_model(about))))

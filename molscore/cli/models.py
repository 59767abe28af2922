"""`molscore models`."""

import json

import typer

from molscore.cli import logs
from molscore.cli.options import JsonOption, configured


@configured()
def models(*, json_: JsonOption = False) -> None:
    """List the models that come with molscore.

    Each can be given to --model by its name; the first is what predicts when none is given. A
    card beside each file says what it was trained on and what it is for.
    """
    from molscore import api  # noqa: PLC0415 (start-up of --help)
    from molscore.report.text import metric_table  # noqa: PLC0415

    listed = api.list_models()
    if json_:
        typer.echo(json.dumps(listed, indent=2, allow_nan=False, ensure_ascii=False))
        return
    rows = [
        {
            "name": model["name"],
            "target": target["name"],
            "unit": target["unit"],
            "rows": model["rows"],
            "experts": model["experts"],
            "rmse": target["rmse"],
            "note": target["note"],
        }
        for model in listed
        for target in model["targets"]
    ]
    lines = metric_table(rows) if rows else ["no model comes with this installation"]
    lines += [f"{model['name']}: {model['file']}" for model in listed]
    typer.echo("\n".join(map(logs.visible, lines)))

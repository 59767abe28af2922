"""The Typer app: its commands, and how one command line is dispatched."""

from collections.abc import Sequence
from typing import Annotated

import typer

from molscore.cli import logs
from molscore.cli.distill import distill
from molscore.cli.evaluate import evaluate
from molscore.cli.export import export
from molscore.cli.featurize import featurize
from molscore.cli.inspect import inspect
from molscore.cli.models import models
from molscore.cli.options import DebugOption
from molscore.cli.predict import predict
from molscore.cli.train import train

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base of every complaint about a command line; Typer does not export it by name."""

app = typer.Typer(
    name="molscore",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from molscore import __version__  # noqa: PLC0415 (reading package metadata takes time)

        typer.echo(f"molscore {__version__}")
        raise typer.Exit


@app.callback()
def molscore(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Predict molecular properties from SMILES: train on a table, predict in a shell or a pipe.

    Data goes to standard output, everything else to standard error. Exit codes: 0 done,
    1 fault, 2 usage, 3 input data, 4 bundle or export, 130 interrupted, 141 closed pipe.
    """
    logs.configure(verbose=False, quiet=False, debug=debug)


app.command(
    epilog="""\b
Examples:
  molscore train esol.csv --output esol.molscore
  molscore train data.csv --output my.molscore --target logS --target pKa --split scaffold
  molscore train esol.csv --output skip05.molscore --plan 4x1@0.5 --folds-file folds.csv"""
)(train)
app.command(
    epilog="""\b
Examples:
  molscore distill esol.molscore esol.csv --output fast.molscore
  molscore distill esol.molscore esol.csv --output fast.molscore --unlabelled library.smi.gz"""
)(distill)
app.command(
    epilog="""\b
Examples:
  molscore predict smiles.txt > predictions.csv
  molscore predict smiles.txt --interval 0.8 --neighbours 3
  echo CCO | molscore predict - --model esol.molscore
  molscore predict smiles.txt --model esol.molscore --output predictions.csv.gz --resume"""
)(predict)
app.command(
    epilog="""\b
Example:
  molscore evaluate measured.csv --model esol.molscore"""
)(evaluate)
app.command(
    epilog="""\b
Example:
  molscore export --model esol.molscore --output esol.onnx"""
)(export)
app.command(
    epilog="""\b
Example:
  molscore inspect --model esol.molscore"""
)(inspect)
app.command(
    epilog="""\b
Example:
  molscore models --json"""
)(models)
app.command(
    epilog="""\b
Examples:
  molscore featurize smiles.txt --output descriptors.parquet
  molscore featurize smiles.txt --kind graphs --output graphs.npz"""
)(featurize)


def dispatch(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: what follows `molscore`.

    Returns:
        The exit code of the command; 2 after a usage error, which is one line on stderr.

    Raises:
        MolscoreError: and whatever else the command raises; `main` turns it into an exit code.
    """
    command = typer.main.get_command(app)
    try:
        # Not `command.main`: it swallows closed pipes and interrupts before we see them.
        with command.make_context("molscore", list(arguments)) as context:
            return command.invoke(context) or 0
    except typer.Exit as stop:
        return stop.exit_code
    except _UsageError as error:
        return _report_usage(error)


def _report_usage(error: Exception) -> int:
    message = " ".join(getattr(error, "format_message", error.__str__)().split())
    message = message.replace(": Value error, ", ": ", 1)  # the name of a class, for nobody
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "molscore"
    logs.write_line(f"error: {message} (see {path} --help)")
    return 2

"""Options shared by the commands, and the bridge from options to configurations.

A default is written once, in the configuration class that owns it; `configured` reads it (and
the allowed values) from there, so the command line cannot drift from the library.
"""

import functools
import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from molscore.cli import logs
from molscore.cli.option_texts import OPTION_TEXTS
from molscore.config import Config

TableArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Table to read; - is standard input.")
]
ModelOption = Annotated[
    # What cannot be read is the reader's to say, with its exit code; so with every path.
    Path,
    typer.Option(
        "--model",
        metavar="BUNDLE",
        readable=False,
        help="Model to use: a .molscore file, or the name of one that `molscore models` lists.",
    ),
]
OutputOption = Annotated[
    str,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Where results go, as csv, tsv, jsonl or parquet by suffix; - is standard output.",
    ),
]
OutputFormat = Literal["auto", "csv", "tsv", "jsonl", "parquet"]
OutputFormatOption = Annotated[
    OutputFormat,
    typer.Option("--output-format", help="Form of the results; auto goes by the suffix."),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace output files that exist already.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="End with exit code 3 when any row could not be used.")
]
RunDirOption = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        metavar="FOLDER",
        readable=False,
        help="Folder for out-of-fold predictions, metrics, configuration and checkpoints; "
        "NAME-run beside the model when not given.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the run in --run-dir where it stopped (--force: replace --output).",
    ),
]
WorkersOption = Annotated[
    int,
    typer.Option(
        "--workers",
        metavar="N",
        min=0,
        help="Worker processes; 0 takes one per available CPU. Results do not depend on it.",
    ),
]
Engine = Literal["onnx", "torch"]
EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="What runs the model; torch needs the [train] extra."),
]
Device = Literal["auto", "cpu", "cuda", "mps"]
DeviceOption = Annotated[
    Device, typer.Option("--device", help="Where torch computes; onnx uses the CPU.")
]
BatchSizeOption = Annotated[
    int,
    typer.Option(
        "--batch-size", metavar="N", min=1, help="Most molecules in one pass of the model."
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="Column to learn or to compare with; give it again for several.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_LOG_OPTIONS: dict[str, Any] = {
    "verbose": Annotated[
        bool, typer.Option("--verbose", "-v", help="Also say what was guessed along the way.")
    ],
    "quiet": Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")
    ],
    "debug": DebugOption,
}


def configured(
    **parts: type[Config],
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Give a command one option per field of its configurations, and the log options.

    Args:
        parts: parameter name of the command -> configuration class it takes there. A field
            becomes `--field-name`, with the default and the allowed values of the class and
            the help of `OPTION_TEXTS`; fields without a text are not options.

    Returns:
        A decorator. The decorated command receives the built configurations.
    """

    def decorate(command: Callable[..., int | None]) -> Callable[..., int | None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [p for p in signature.parameters.values() if p.name not in parts]
        for part in parts.values():
            parameters += _option_parameters(part)
        parameters += [_keyword(name, kind, False) for name, kind in _LOG_OPTIONS.items()]

        @functools.wraps(command)
        def run(**values: Any) -> int | None:
            logs.configure(**{name: values.pop(name) for name in _LOG_OPTIONS})
            for name, part in parts.items():
                fields = {field: values.pop(field) for field in OPTION_TEXTS[part]}
                values[name] = part(**fields)
            return command(**values)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def given(context: typer.Context) -> frozenset[str]:
    """Return the names of the parameters whose option stands on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(n for n, source in sources.items() if source and source.name == "COMMANDLINE")


def _option_parameters(part: type[Config]) -> list[inspect.Parameter]:
    """Return one Typer parameter per documented field of `part`."""
    hints = typing.get_type_hints(part)
    parameters = []
    for field, text in OPTION_TEXTS[part].items():
        name = field.replace("_", "-")
        # What is on by default needs a name to turn it off.
        names = f"--{name}/--no-{name}" if part.default(field) is True else f"--{name}"
        option = typer.Option(names, help=text.help, metavar=text.metavar)
        parameters.append(_keyword(field, Annotated[hints[field], option], part.default(field)))
    return parameters


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )

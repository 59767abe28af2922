"""`molscore featurize`."""

from typing import Annotated, Literal

import typer

from molscore.chem.policy import ChemPolicy
from molscore.cli import reports
from molscore.cli.options import (
    ForceOption,
    OutputFormatOption,
    StrictOption,
    TableArgument,
    WorkersOption,
    configured,
)
from molscore.cli.progress import progress_bar
from molscore.data.records import TableOptions

Kind = Literal["descriptors", "graphs"]


@configured(policy=ChemPolicy, table=TableOptions)
def featurize(
    file: TableArgument,
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where features go: csv, tsv, jsonl or parquet by suffix, npz for graphs; "
            "- is standard output.",
        ),
    ] = "-",
    kind: Annotated[
        Kind, typer.Option("--kind", help="RDKit descriptors, or the graph arrays a model sees.")
    ] = "descriptors",
    output_format: OutputFormatOption = "auto",
    workers: WorkersOption = 0,
    strict: StrictOption = False,
    force: ForceOption = False,
    policy: ChemPolicy,
    table: TableOptions,
) -> int:
    """Write the features of every row of a table.

    One row out for each row in, in the same order; a row without a molecule keeps its place,
    with the reason.
    """
    from molscore import api  # noqa: PLC0415 (start-up of --help)

    reports.announce_terminal(file)
    with progress_bar("featurizing", output=output) as progress:
        summary = api.featurize_table(
            file,
            output,
            kind=kind,
            table=table,
            policy=policy,
            output_format=output_format,
            force=force,
            workers=workers,
            progress=progress,
        )
    return reports.close_summary(summary, verb="featurized", strict=strict)

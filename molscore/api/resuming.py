"""Going on with a table of predictions that a run left half-written."""

import logging
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from molscore.chem.version import rdkit_version
from molscore.data.kept import KeptOutput
from molscore.data.marks import About
from molscore.data.records import TableReader
from molscore.data.writers import OutputFormat, resolve_format
from molscore.errors import ConfigError
from molscore.predict.chunks import CHUNK_ROWS, FIRST_ROWS, RowRange
from molscore.predict.stream import Summary

LOGGER: Final = logging.getLogger(__name__)
_CONTINUED: Final = ("csv", "tsv", "jsonl")


def can_be_kept(output: str | Path, wanted: OutputFormat, *, resume: bool) -> bool:
    """Return whether a half-written output can be gone on with.

    Raises:
        ConfigError: if it cannot, and `resume` asks for it.
    """
    if str(output) == "-":
        if resume:
            raise ConfigError("--resume goes on with a file; name it with --output")
        return False
    chosen, _ = resolve_format(output, wanted)
    if resume and chosen not in _CONTINUED:
        raise ConfigError(
            f"--resume cannot go on with {chosen}, of which nothing can be read before its end is "
            f"written; predict to {', '.join(_CONTINUED)} (also .gz), or leave --resume out"
        )
    return chosen in _CONTINUED


def describe_run(
    reader: TableReader,
    columns: Sequence[str],
    rows: RowRange,
    *,
    form: tuple[str, bool],
    **settings: Any,
) -> About:
    """Return what decides the bytes of an output, apart from the rows of the input.

    Args:
        reader: the input.
        columns: of the output.
        rows: those wanted.
        form: format of the output, and whether it is gzipped.
        settings: option -> JSON value.
    """
    name, gzipped = form
    return {
        "molscore": version("molscore"),
        "RDKit": rdkit_version(),
        "chunks of": [FIRST_ROWS, CHUNK_ROWS],
        "the input columns": reader.columns,
        # By number too: names may repeat.
        "the SMILES in column": f"{reader.smiles_index + 1} {reader.columns[reader.smiles_index]}",
        "the output format": f"{name}.gz" if gzipped else name,
        "the output columns": list(columns),
        "--skip": rows.skip,
        "--limit": rows.limit,
        **{f"--{name.replace('_', '-')}": value for name, value in settings.items()},
    }


def open_kept(
    output: str | Path,
    about: About,
    reader: TableReader,
    rows: RowRange,
    *,
    force: bool,
    resume: bool,
) -> tuple[KeptOutput, Summary]:
    """Open an output that can be gone on with, and the input behind the rows that are done.

    Returns:
        The output, and the counts of the rows in it.

    Raises:
        ConfigError: see `KeptOutput`.
        InputError: if the rows that are done are not those of the input.
    """
    kept = KeptOutput(output, about, force=force, resume=resume)
    if not resume:
        return kept, Summary()
    try:
        kept.continue_from(iter(reader), rows.skip)
    except BaseException:
        kept.discard()
        raise
    counts = Counter(kept.mark.counts) if kept.mark else Counter[str]()
    if kept.mark:
        LOGGER.info(
            "going on at row %s; %s rows are done",
            f"{kept.mark.next_row + 1:,}",
            f"{counts.total():,}",
        )
    return kept, Summary(n_read=counts.total(), n_ok=counts["ok"], counts=counts)

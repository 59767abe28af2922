"""What a training run says of itself."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from molscore.data.targets import LabelledTable
from molscore.train.folder import RunConfig
from molscore.train.log import Log
from molscore.train.prepare import Prepared
from molscore.train.start import Start


def say_what_is_used(
    table: LabelledTable, prepared: Prepared, log: Log, *, excluding: bool
) -> None:
    """Say how many rows are used and which are not; of excluded ones only when `excluding`."""
    n = prepared.counts
    log(f"{table.name}: {n['rows_read']} rows read, {n['rows_used']} used")
    for item in table.rejected[:20]:
        where = f"line {item.line}" + (f", column {item.column!r}" if item.column else "")
        log(f"left out: {where}: {item.text}: {item.reason}")
    if len(table.rejected) > 20:
        log(f"left out: {len(table.rejected) - 20} more values")
    for failure in prepared.failures[:20]:
        log(
            f"left out: line {table.lines[failure.row]}: {failure.smiles}: "
            f"{failure.status}: {failure.reason}"
        )
    if len(prepared.failures) > 20:
        log(f"left out: {len(prepared.failures) - 20} more rows with an unusable SMILES")
    if excluding:  # none is worth a line too: the wrong table excludes nothing
        log(f"{n['rows_excluded']} rows hold excluded structures and are not used")
    if prepared.n_unlabelled:
        log(f"left out: {_count(prepared.n_unlabelled, 'row')} without a label")
    for text in prepared.warnings:
        log(f"warning: {text}")


def describe_start(start: Start, known: NDArray[np.bool_]) -> str:
    """Say what the experts start from, and how much of the table it has seen."""
    n = int(known.sum())
    said = f"starting from {start.name} (sha256 {start.sha256[:12]})"
    if not n:
        return f"{said}, which was trained on no structure of this table"
    if n == len(known):
        return (
            f"warning: {said}, which was trained on the structures of all {n} rows: "
            "no figure below says how it does on new molecules"
        )
    return (
        f"warning: {said}, which was trained on the structures of {n} of {len(known)} rows: "
        "the figures over all rows flatter this model; those of the others are given beside them"
    )


def describe_experts(config: RunConfig, experts: Sequence[int]) -> str:
    """Return such as "5 experts of 100 epochs and 5 experts of 1000 trees", or students."""
    counts = Counter(describe_length(config, e) for e in experts)
    return " and ".join(f"{_count(n, config.noun)} of {length}" for length, n in counts.items())


def describe_length(config: RunConfig, expert: int) -> str:
    """Return such as "100 epochs"."""
    if config.kind(expert) == "graph":
        return _count(config.train.epochs, "epoch")
    return _count(config.train.iterations, "tree") + " a target" * (len(config.targets) > 1)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"

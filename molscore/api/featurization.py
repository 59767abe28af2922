"""Features of a table of structures: what a model sees, written to a file."""

import io
import json
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from molscore.api.prediction import log_table
from molscore.chem.describing import describe_stream
from molscore.chem.descriptors import DESCRIPTOR_NAMES
from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, FEATURIZER_VERSION, Feature
from molscore.chem.graph import featurize_many
from molscore.chem.packed import MolGraph, PackedGraphs
from molscore.chem.parse import Molecule, ParseFailure, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.chem.version import rdkit_version
from molscore.cpus import worker_count
from molscore.data.names import free_names
from molscore.data.outputs import Output, refuse_inputs
from molscore.data.records import Record, TableOptions, TableReader
from molscore.data.tables import open_table, open_writer
from molscore.data.writers import Cell, OutputFormat
from molscore.errors import ConfigError
from molscore.predict.chunks import cut
from molscore.predict.stream import MAX_FAILURES, Failure, Summary

FeatureKind = Literal["descriptors", "graphs"]

_NO_ATOMS: Final = MolGraph(
    np.empty((0, len(ATOM_FEATURES)), np.uint8),
    np.empty((0, 2), np.int32),
    np.empty((0, len(BOND_FEATURES)), np.uint8),
)
_TABLE: Final = TableOptions()
_POLICY: Final = ChemPolicy()
Parsed = list[tuple[Record, Molecule | ParseFailure | str]]
"""Records with their molecule, why there is none, or what is wrong with the record itself."""


def featurize_table(
    source: str | Path,
    output: str | Path = "-",
    *,
    kind: FeatureKind = "descriptors",
    table: TableOptions = _TABLE,
    policy: ChemPolicy = _POLICY,
    output_format: OutputFormat = "auto",
    force: bool = False,
    workers: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Write the features of every row of a table; rows are neither lost, added nor moved.

    `descriptors` writes a table: the input columns, the RDKit descriptors (blank where
    undefined), `status` and `error`. `graphs` writes an `.npz` file that numpy loads without
    pickle: the arrays of `molscore.chem.packed.PackedGraphs` with one graph a row (without
    atoms where there is no molecule), `failed_row`, `failed_status` and `failed_error` for the
    rows without one, and `about`, a JSON text with what every code means.

    Args:
        source: a table, or "-" for stdin.
        output: a file; or, for descriptors, "-" for stdout.
        kind: what to write.
        table: how to read `source`.
        policy: how molecules are standardised.
        output_format: of descriptors; overrides the suffix.
        force: replace an existing file.
        workers: processes that compute descriptors; 0 takes the available CPUs.
        progress: told the number of rows done.

    Raises:
        InputError: when the table cannot be read.
        ConfigError: on options that cannot be used, or an output file in the way.
    """
    refuse_inputs(output, table=source)
    worker_count(workers)
    if kind == "graphs":
        _check_npz(output, output_format)
    with open_table(source, table) as reader:
        log_table(reader)
        count = _Count(reader.smiles_index, progress)
        chunks = _parsed_chunks(reader, policy)
        if kind == "graphs":
            _write_graphs(chunks, output, policy, force, count)
        else:
            # Closed at once whatever happens: it may hold processes.
            with closing(_described(chunks, policy, workers)) as described:
                _write_descriptors(described, reader.columns, output, output_format, force, count)
    return count.summary


def _parsed_chunks(reader: TableReader, policy: ChemPolicy) -> Iterator[Parsed]:
    for batch in cut(iter(reader)):
        yield [
            (r, r.problem or parse_smiles(r.fields[reader.smiles_index], policy, r.row))
            for r in batch
        ]


class _Count:
    """Counts rows once their features are written."""

    def __init__(self, smiles_index: int, progress: Callable[[int], None] | None) -> None:
        self.summary = Summary()
        self._smiles_index, self._progress = smiles_index, progress

    def add(self, chunk: Parsed) -> None:
        summary = self.summary
        for record, parsed in chunk:
            status, reason = _status(parsed)
            summary.n_read += 1
            summary.counts[status] += 1
            summary.n_ok += status == "ok"
            if status != "ok" and len(summary.failures) < MAX_FAILURES:
                smiles = record.fields[self._smiles_index]
                summary.failures.append(Failure(record.row, record.line, smiles, status, reason))
        if self._progress is not None:
            self._progress(summary.n_read)


def _molecules(chunk: Parsed) -> list[Molecule]:
    return [parsed for _, parsed in chunk if isinstance(parsed, Molecule)]


def _described(
    chunks: Iterator[Parsed], policy: ChemPolicy, workers: int
) -> Generator[tuple[Parsed, NDArray[np.float64]], None, None]:
    """Yield each chunk with the descriptors of its molecules."""
    ahead: deque[Parsed] = deque()

    def blocks() -> Iterator[list[Molecule]]:
        for chunk in chunks:
            ahead.append(chunk)
            yield _molecules(chunk)

    with closing(describe_stream(blocks(), policy, workers)) as described:
        for values in described:
            yield ahead.popleft(), values


def _status(parsed: Molecule | ParseFailure | str) -> tuple[str, str]:
    if isinstance(parsed, Molecule):
        return "ok", ""
    return ("malformed", parsed) if isinstance(parsed, str) else (parsed.status, parsed.reason)


def _write_descriptors(
    chunks: Iterator[tuple[Parsed, NDArray[np.float64]]],
    columns: Sequence[str],
    output: str | Path,
    output_format: OutputFormat,
    force: bool,
    count: _Count,
) -> None:
    names = free_names(columns, [*DESCRIPTOR_NAMES, "status", "error"])
    with open_writer(
        output,
        [*columns, *names],
        format=output_format,
        force=force,
        number_columns=names[:-2],
    ) as writer:
        for chunk, described in chunks:
            values = iter(described.tolist())
            rows: list[list[Cell]] = []
            for record, parsed in chunk:
                numbers: list[Any] = [None] * len(DESCRIPTOR_NAMES)
                if isinstance(parsed, Molecule):
                    numbers = [v if math.isfinite(v) else None for v in next(values)]
                rows.append([*record.fields, *numbers, *_status(parsed)])
            writer.write(rows)
            count.add(chunk)


def _check_npz(output: str | Path, output_format: OutputFormat) -> None:
    if not str(output).lower().endswith(".npz"):
        raise ConfigError("--kind graphs needs an --output file that ends in .npz")
    if output_format != "auto":
        raise ConfigError(f"--output-format {output_format} does not go with --kind graphs")


def _write_graphs(
    chunks: Iterator[Parsed],
    output: str | Path,
    policy: ChemPolicy,
    force: bool,
    count: _Count,
) -> None:
    file = Output(output, force=force)
    try:
        parts = [PackedGraphs.pack([])]
        failed: list[tuple[int, str, str]] = []
        for chunk in chunks:
            parts.append(_graphs(chunk))
            failed += [
                (record.row, *_status(parsed))
                for record, parsed in chunk
                if not isinstance(parsed, Molecule)
            ]
            count.add(chunk)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **_arrays(parts, failed, policy))
        file.write(buffer.getvalue())
        file.commit()
    except BaseException:
        file.discard()
        raise


def _graphs(chunk: Parsed) -> PackedGraphs:
    """Featurise the molecules among the records; every other record has no atoms."""
    molecules = _molecules(chunk)
    packed = PackedGraphs.concatenate([featurize_many(molecules), PackedGraphs.pack([_NO_ATOMS])])
    place = np.full(len(chunk), len(molecules))  # of the one without atoms
    place[[isinstance(parsed, Molecule) for _, parsed in chunk]] = np.arange(len(molecules))
    return packed.take(place)


def _arrays(
    parts: Sequence[PackedGraphs], failed: Sequence[tuple[int, str, str]], policy: ChemPolicy
) -> dict[str, NDArray[Any]]:
    packed = PackedGraphs.concatenate(parts)
    about = {
        "featurizer_version": FEATURIZER_VERSION,
        "rdkit_version": rdkit_version(),
        "policy": policy.to_dict(),
        "atom_features": _labels(ATOM_FEATURES),
        "bond_features": _labels(BOND_FEATURES),
    }
    return {
        "atom_codes": packed.atom_codes,
        "bond_atoms": packed.bond_atoms,
        "bond_codes": packed.bond_codes,
        "atom_ptr": packed.atom_ptr,
        "bond_ptr": packed.bond_ptr,
        "failed_row": np.array([row for row, _, _ in failed], dtype=np.int64),
        "failed_status": np.array([status for _, status, _ in failed], dtype=np.str_),
        "failed_error": np.array([error for _, _, error in failed], dtype=np.str_),
        "about": np.array(json.dumps(about)),
    }


def _labels(features: Sequence[Feature]) -> dict[str, list[str]]:
    return {feature.name: list(feature.labels) for feature in features}

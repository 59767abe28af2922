"""One chunk of SMILES to predictions, whatever is among them.

Nothing about a row but the last bits of its numbers depends on the other rows of its chunk, and
chunks are cut at absolute row numbers. A molecule that makes the engine fail is separated from the
rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import Bundle
from molscore.bundle.summary import Floats, combine, to_reported
from molscore.chem.graph import featurize_many
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import Molecule, ParseFailure, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.data.writers import Cell
from molscore.errors import MolscoreError
from molscore.predict.engine import OUT_OF_MEMORY, Engine, Outputs, is_out_of_memory

BATCH_SIZE: Final = 16
"""Molecules per run. Fastest here: the state of a larger batch leaves the cache."""

ATOMS_PER_MOLECULE: Final = 32
"""A batch ends at this many atoms times the batch size, so that long chains do not add up."""
RowStatus = Literal["ok", "empty", "invalid_smiles", "unsupported", "malformed", "failed"]
"""`malformed`: the record itself is broken; `failed`: a molecule without a finite prediction."""


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """Predictions for consecutive rows.

    Attributes:
        values: float64 [n, n_targets] in the unit of the target; for a class its probability.
            NaN where there is none.
        sd: float64 [n, n_targets], standard deviation of the experts (n - 1 in the
            denominator); NaN with a single expert.
        status: one of `RowStatus` per row.
        error: the reason in words, "" for `ok`.
        lower: float64 [n, n_targets], lower end of the interval, in the unit of the target; NaN
            where there is none.
        upper: float64 [n, n_targets], its upper end.
        extras: further cells per row, see `molscore.trust.judge.Judge`.
    """

    values: Floats
    sd: Floats
    status: list[RowStatus]
    error: list[str]
    lower: Floats
    upper: Floats
    extras: list[list[Cell]]

    def __len__(self) -> int:
        return len(self.status)

    @classmethod
    def blank(cls, status: list[RowStatus], error: list[str], n_targets: int) -> Self:
        """Return a result without any prediction yet."""
        n = len(status)
        gaps = (np.full((n, n_targets), np.nan) for _ in range(4))
        values, sd, lower, upper = gaps
        return cls(values, sd, status, error, lower, upper, [[] for _ in range(n)])

    @classmethod
    def concatenate(cls, results: Sequence[Self]) -> Self:
        """Put results of consecutive rows one behind the other."""
        columns: dict[str, Any] = {}
        for name in (field.name for field in fields(cls)):
            parts = [getattr(result, name) for result in results]
            arrays = isinstance(parts[0], np.ndarray)
            columns[name] = np.concatenate(parts) if arrays else [x for part in parts for x in part]
        return cls(**columns)

    def part(self, part: slice) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, field.name)[part] for field in fields(self)))


class Described(NamedTuple):
    """Descriptors of the molecules of a chunk.

    Attributes:
        raw: float64 [n, n_descriptors]; NaN for a molecule that has none.
        errors: index of such a molecule, why.
    """

    raw: NDArray[np.float64]
    errors: dict[int, str]


class ReadChunk(NamedTuple):
    """Consecutive rows as molecules, read under one policy.

    Attributes:
        status: one per row, `ok` where there is a molecule.
        error: the reason in words, "" for `ok`.
        molecules: row within the chunk, molecule.
        packed: the graphs of `molecules`.
        descriptors: names -> descriptors of `molecules`, filled in when first needed.
        fingerprints: those of `molecules`, filled in when first needed.
    """

    status: list[RowStatus]
    error: list[str]
    molecules: list[tuple[int, Molecule]]
    packed: PackedGraphs
    descriptors: dict[tuple[str, ...], Described]
    fingerprints: list[NDArray[np.uint8]]


def predict_chunk(
    smiles: Sequence[str],
    first_row: int,
    bundle: Bundle,
    engine: Engine,
    *,
    batch_size: int = BATCH_SIZE,
) -> ChunkResult:
    """Predict consecutive rows.

    Args:
        smiles: one SMILES per row, as found in the table.
        first_row: row number of the first.
        bundle: the model: policy, targets, descriptors.
        engine: the same model, ready to run.
        batch_size: most molecules per run.
    """
    read = read_chunk(smiles, first_row, bundle.manifest.policy)
    return predict_read(read, bundle, engine, batch_size=batch_size)


def read_chunk(smiles: Sequence[str], first_row: int, policy: ChemPolicy) -> ReadChunk:
    """Parse and featurise consecutive rows; see `predict_chunk`."""
    status: list[RowStatus] = ["ok"] * len(smiles)
    error = [""] * len(smiles)
    molecules: list[tuple[int, Molecule]] = []
    for index, text in enumerate(smiles):
        parsed = _read(text, first_row + index, policy)
        if isinstance(parsed, ParseFailure):
            status[index] = parsed.status
            error[index] = parsed.reason
        elif isinstance(parsed, str):
            status[index] = "failed"
            error[index] = parsed
        else:
            molecules.append((index, parsed))
    molecules, packed = _featurize(molecules, status, error)
    return ReadChunk(status, error, molecules, packed, {}, [])


def predict_read(
    read: ReadChunk, bundle: Bundle, engine: Engine, *, batch_size: int = BATCH_SIZE
) -> ChunkResult:
    """Predict rows that were read under the policy of `bundle`; see `predict_chunk`."""
    result = ChunkResult.blank(list(read.status), list(read.error), bundle.manifest.n_targets)
    if read.molecules:
        _predict_molecules(read, bundle, engine, batch_size, result)
    return result


def _read(text: str, row: int, policy: ChemPolicy) -> Molecule | ParseFailure | str:
    """Return a molecule, why there is none, or the words of an unforeseen error."""
    try:
        return parse_smiles(text, policy, row)
    except Exception as error:  # noqa: BLE001 (one odd molecule must not stop the table)
        return _unreadable(error)


def _featurize(
    molecules: list[tuple[int, Molecule]], status: list[RowStatus], error: list[str]
) -> tuple[list[tuple[int, Molecule]], PackedGraphs]:
    """Featurise all molecules at once; where that fails, one by one to find the culprit.

    Returns:
        The molecules that have a graph, and their graphs; `status` and `error` of their rows say
        why the others have none.
    """
    try:
        return molecules, featurize_many([molecule for _, molecule in molecules])
    except Exception as problem:  # noqa: BLE001 (one odd molecule must not stop the table)
        if len(molecules) == 1:
            index = molecules[0][0]
            status[index], error[index] = "failed", _unreadable(problem)
            return [], PackedGraphs.pack([])
    parts = [_featurize([molecule], status, error) for molecule in molecules]
    return [m for kept, _ in parts for m in kept], PackedGraphs.concatenate([g for _, g in parts])


def _predict_molecules(
    read: ReadChunk,
    bundle: Bundle,
    engine: Engine,
    batch_size: int,
    result: ChunkResult,
) -> None:
    """Fill in the rows of `result` that have a molecule."""
    manifest = bundle.manifest
    descriptors, errors = _descriptors(read, bundle)
    rows = np.array([row for row, _ in read.molecules])
    raw = np.empty((manifest.n_experts, len(rows), manifest.n_targets), dtype=np.float32)
    ran = np.ones(len(rows), dtype=bool)
    parts = list(_batches(np.diff(read.packed.atom_ptr), batch_size))
    for part, outputs in _run(engine, read.packed, descriptors, parts):
        if isinstance(outputs, str):
            ran[part] = False
            for row in rows[part]:
                result.status[row], result.error[row] = "failed", outputs
        else:
            raw[:, part] = outputs
    for index, reason in errors.items():  # those went along, with what a gap is filled with
        ran[index] = False
        result.status[rows[index]], result.error[rows[index]] = "failed", reason
    _report(raw[:, ran], rows[ran], bundle, result)


def _descriptors(
    read: ReadChunk, bundle: Bundle
) -> tuple[NDArray[np.float32] | None, dict[int, str]]:
    """Return descriptors scaled for each expert, and why some molecules have none.

    Returns:
        float32 [n_experts, n, n_descriptors], or None for a model that takes none; see
        `Described.errors`.
    """
    manifest = bundle.manifest
    if not manifest.descriptor_names:
        return None, {}
    names = manifest.descriptor_names
    if names not in read.descriptors:
        read.descriptors[names] = _describe([molecule for _, molecule in read.molecules], names)
    raw, errors = read.descriptors[names]
    scaled = np.stack([bundle.scaler(i).transform(raw) for i in range(manifest.n_experts)])
    return scaled, errors


def _describe(molecules: list[Molecule], names: tuple[str, ...]) -> Described:
    """Compute the descriptors of all molecules at once; where that fails, one by one."""
    # Here, because RDKit's descriptor modules cost start-up and most models take none.
    from molscore.chem.descriptors import compute_descriptors  # noqa: PLC0415

    try:
        return Described(compute_descriptors(molecules, names), {})
    except MolscoreError:  # a descriptor this RDKit does not know
        raise
    except Exception as problem:  # noqa: BLE001 (one odd molecule must not stop the table)
        if len(molecules) == 1:
            reason = f"the descriptors failed: {_words(problem)}"
            return Described(np.full((1, len(names)), np.nan), {0: reason})
    parts = [_describe([molecule], names) for molecule in molecules]
    errors = {i: part.errors[0] for i, part in enumerate(parts) if part.errors}
    return Described(np.concatenate([part.raw for part in parts]), errors)


def _batches(n_atoms: NDArray[np.int64], batch_size: int) -> Iterator[NDArray[np.int64]]:
    """Cut molecules, ordered by size, into batches of like ones."""
    order = np.argsort(n_atoms, kind="stable")
    budget = ATOMS_PER_MOLECULE * batch_size
    start = atoms = 0
    for end, index in enumerate(order):
        if end > start and (end - start == batch_size or atoms + n_atoms[index] > budget):
            yield order[start:end]
            start, atoms = end, 0
        atoms += int(n_atoms[index])
    yield order[start:]


def _run(
    engine: Engine,
    packed: PackedGraphs,
    descriptors: NDArray[np.float32] | None,
    parts: list[NDArray[np.int64]],
) -> Iterator[tuple[NDArray[np.int64], Outputs | str]]:
    """Run batches; where the engine fails, each alone, then its molecules, to find the culprit."""
    extras = [None if descriptors is None else descriptors[:, part] for part in parts]
    try:
        outputs = engine.run(list(zip(packed.batches(parts), extras, strict=True)))
    except MolscoreError:  # the model itself cannot be used
        raise
    except Exception as error:  # noqa: BLE001 (engines share no base; MemoryError is among them)
        if len(parts) == len(parts[0]) == 1:
            yield parts[0], f"the engine failed: {_words(error)}"
            return
        apart = parts if len(parts) > 1 else parts[0][:, None]
        answers = [a for part in apart for a in _run(engine, packed, descriptors, [part])]
        if is_out_of_memory(error) and not any(isinstance(o, str) for _, o in answers):
            # No molecule is to blame, and other groups would give other last bits.
            raise MolscoreError(OUT_OF_MEMORY) from None
        yield from answers
    else:
        yield from zip(parts, outputs, strict=True)


def _report(outputs: Outputs, rows: NDArray[np.int64], bundle: Bundle, result: ChunkResult) -> None:
    """Turn raw outputs [n_experts, n, n_targets] into what a user reads, in `rows` of a chunk."""
    for t, target in enumerate(bundle.manifest.targets):
        values, sd = combine(to_reported(outputs[:, :, t], target, bundle.calibrations[t]))
        finite = np.isfinite(values)
        result.values[rows[finite], t] = values[finite]
        result.sd[rows[finite], t] = np.where(np.isfinite(sd), sd, np.nan)[finite]
        for row in rows[~finite]:
            result.status[row] = "failed"
            result.error[row] = f"the prediction of {target.name!r} is not a finite number"


def _unreadable(error: Exception) -> str:
    return f"cannot be read: {_words(error)}"


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]

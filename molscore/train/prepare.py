"""From a labelled table to training data: parse, featurise, fold, and count what was left out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.chem.atom_kinds import AtomKind, atom_kinds
from molscore.chem.describing import describe_many
from molscore.chem.fingerprints import fingerprint_many
from molscore.chem.graph import featurize_many
from molscore.chem.parse import Molecule, ParseFailure, parse_smiles, scaffold, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.splits import count_crossing, make_folds, parse_split
from molscore.data.targets import LabelledTable
from molscore.errors import InputError
from molscore.train.data import TrainingData

Log = Callable[[str], None]

MIN_STRUCTURES: Final = 2
"""Fewer different structures than this cannot be split into a part to learn from and a part
to be judged on."""

MAX_VALUE: Final = 1e30
"""Largest size of a value to learn: float32 ends at 3e38, and room is needed for sums."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Training data and what was learned while making it.

    Attributes:
        data: what the experts train on.
        keys: structure key of each used row, in the order of `data`.
        smiles: of each used row, as given.
        fingerprints: uint8 [n, n_bytes], of each used row.
        atoms: the kinds of atoms in all of them.
        failures: rows whose SMILES could not be used.
        n_unlabelled: rows left out because no target had a value.
        warnings: what the user should know; also stored in the bundle.
        counts: figures for the bundle.
    """

    data: TrainingData
    keys: tuple[str, ...]
    smiles: tuple[str, ...]
    fingerprints: NDArray[np.uint8]
    atoms: frozenset[AtomKind]
    failures: tuple[ParseFailure, ...]
    n_unlabelled: int
    warnings: tuple[str, ...]
    counts: dict[str, Any] = field(default_factory=dict)


def prepare(
    table: LabelledTable,
    *,
    policy: ChemPolicy,
    split: str,
    n_folds: int,
    seed: int,
    descriptors: bool,
    workers: int,
    folds: NDArray[np.int64] | None = None,
    exclude: frozenset[str] = frozenset(),
) -> Prepared:
    """Turn a table into training data.

    Args:
        table: rows with targets.
        policy: how molecules are standardised.
        split: random, scaffold, group:COLUMN or time:COLUMN; not used with `folds`.
        n_folds: K; 1 holds nothing out.
        seed: for the split.
        descriptors: compute the RDKit descriptors too.
        workers: processes that do so; 0 takes the available CPUs.
        folds: int64, one fold for every row of the table, or None to make them.
        exclude: keys of structures that are not to be learned from.

    Raises:
        InputError: when too little is left to train on.
    """
    molecules, failures = _parse(table, policy)
    values = _transformed(table)
    labelled: NDArray[np.bool_] = np.asarray(np.isfinite(values).any(axis=1))
    used = [m for m in molecules if labelled[m.row]]
    n_labelled = len(used)
    keys = tuple(structure_key(m) for m in used)
    used = [m for m, key in zip(used, keys, strict=True) if key not in exclude]
    keys = tuple(key for key in keys if key not in exclude)
    rows = np.array([m.row for m in used], dtype=np.int64)
    _check_enough(table, keys, failures, labelled, n_labelled - len(used))
    warnings: list[str] = []
    if folds is None:
        fold_of, n_used = _make_folds(used, keys, table, split, n_folds, seed, warnings)
    else:
        fold_of, n_used = _given_folds(folds[rows], keys, n_folds, warnings), n_folds
    warnings = _repeat_warnings(keys, values[rows], fold_of, table) + warnings
    warnings += _target_warnings(table, values[rows], fold_of)
    _check_every_expert_learns(table, values[rows], fold_of)
    data = TrainingData(
        graphs=featurize_many(used),
        values=values[rows],
        is_class=tuple(t.kind == "classification" for t in table.targets),
        folds=fold_of,
        table_rows=rows,
        descriptors=describe_many(used, policy, workers) if descriptors else None,
    )
    counts = {
        "rows_read": len(table.smiles),
        "rows_used": len(rows),
        "rows_unusable_smiles": len(failures),
        "rows_without_label": int((~labelled).sum()),
        "rows_excluded": n_labelled - len(used),
        "labels_rejected": len(table.rejected),
        "structures": len(set(keys)),
        "folds": n_used,
    }
    return Prepared(
        data=data,
        keys=keys,
        smiles=tuple(m.smiles.split(None, 1)[0] for m in used),
        fingerprints=fingerprint_many(used),
        atoms=atom_kinds(used),
        failures=tuple(failures),
        n_unlabelled=counts["rows_without_label"],
        warnings=tuple(warnings),
        counts=counts,
    )


def _parse(table: LabelledTable, policy: ChemPolicy) -> tuple[list[Molecule], list[ParseFailure]]:
    molecules: list[Molecule] = []
    failures: list[ParseFailure] = []
    malformed = table.malformed
    for row, smiles in enumerate(table.smiles):
        if row in malformed:  # reported once already, among the rejected
            continue
        parsed = parse_smiles(smiles, policy, row)
        if isinstance(parsed, ParseFailure):
            failures.append(parsed)
        else:
            molecules.append(parsed)
    return molecules, failures


def _transformed(table: LabelledTable) -> NDArray[np.float64]:
    """Return the targets in the unit the model learns, NaN where there is no label."""
    columns = [t.forward(table.values[:, i]) for i, t in enumerate(table.targets)]
    return np.stack(columns, axis=1)


def _check_enough(
    table: LabelledTable,
    keys: Sequence[str],
    failures: Sequence[ParseFailure],
    labelled: NDArray[np.bool_],
    n_excluded: int,
) -> None:
    n = len(set(keys))
    if n >= MIN_STRUCTURES:
        return
    first = (
        f" The first: line {table.lines[failures[0].row]}: {failures[0].reason}."
        if failures
        else ""
    )
    raise InputError(
        f"{table.name}: {n} different usable structure{'s' * (n != 1)} in "
        f"{len(table.smiles)} rows; "
        f"training needs at least {MIN_STRUCTURES}. {len(failures)} rows have a SMILES that "
        f"cannot be used, {int((~labelled).sum())} no label"
        + f", and {n_excluded} hold an excluded structure" * (n_excluded > 0)
        + f".{first}"
    )


def _repeat_warnings(
    keys: Sequence[str],
    values: NDArray[np.float64],
    folds: NDArray[np.int64],
    table: LabelledTable,
) -> list[str]:
    """Say how many structures occur more than once, and in how many their labels disagree."""
    repeated = {key for key, n in Counter(keys).items() if n > 1}
    if not repeated:
        return []
    groups: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        if key in repeated:
            groups.setdefault(key, []).append(i)
    rows = sum(map(len, groups.values()))
    together = (folds >= 0).any() and count_crossing(keys, folds) == 0
    said = [
        f"{rows} rows hold {len(repeated)} structures (stereo aside) more than once"
        + "; each structure stays within one fold" * bool(together)
    ]
    for t, target in enumerate(table.targets):
        differ = 0
        for members in groups.values():
            seen = values[members, t]
            seen = seen[np.isfinite(seen)]
            differ += bool(seen.size > 1 and np.ptp(seen) > 1e-9 * max(1.0, np.abs(seen).max()))
        if differ:
            said.append(
                f"{differ} of them carry different values of {target.name!r}; all are kept, and "
                "the model learns the mean of what it cannot tell apart"
            )
    return said


def _make_folds(
    used: Sequence[Molecule],
    keys: Sequence[str],
    table: LabelledTable,
    split: str,
    n_folds: int,
    seed: int,
    warnings: list[str],
) -> tuple[NDArray[np.int64], int]:
    if n_folds == 1:
        warnings.append("one fold: the expert sees every row, so there is no cross-validation")
        return np.full(len(keys), -1, dtype=np.int64), 1
    n_structures = len(set(keys))
    if n_structures < n_folds:
        warnings.append(
            f"{n_structures} different structures cannot fill {n_folds} folds; using {n_structures}"
        )
        n_folds = n_structures
    kind, column = parse_split(split)
    of_column: list[str] | None = None
    if column is not None:
        cells = table.column(column, flag=f"--split {kind}:")
        of_column = [cells[m.row] for m in used]
    folds = make_folds(
        split,
        n_folds,
        seed,
        keys,
        scaffolds=[scaffold(m) for m in used] if kind == "scaffold" else None,
        groups=of_column if kind == "group" else None,
        times=of_column if kind == "time" else None,
    )
    return folds, n_folds


def _given_folds(
    folds: NDArray[np.int64], keys: Sequence[str], n_folds: int, warnings: list[str]
) -> NDArray[np.int64]:
    empty = sorted(set(range(n_folds)) - set(folds.tolist()))
    if empty:
        warnings.append(
            f"no usable row of the folds file is in fold {', '.join(map(str, empty))} (counted "
            "from 0): such an expert sees every row and is not judged"
        )
    crossing = count_crossing(keys, folds)
    if crossing:
        warnings.append(
            f"the folds file puts {crossing} structure{'s' * (crossing != 1)} into more than one "
            "fold: an expert is judged on structures it has seen (the file is obeyed)"
        )
    return folds


def _check_every_expert_learns(
    table: LabelledTable, values: NDArray[np.float64], folds: NDArray[np.int64]
) -> None:
    """Refuse a target all of whose values lie in one fold: its expert would guess blindly."""
    for t, target in enumerate(table.targets):
        holding = set(folds[np.isfinite(values[:, t])].tolist())
        if len(holding) == 1 and -1 not in holding:
            raise InputError(
                f"{table.name}: all usable values of {target.name!r} lie in fold "
                f"{holding.pop()} (counted from 0), so the expert blind to it would learn nothing "
                "of them; use other folds, or leave the target out"
            )


def _target_warnings(
    table: LabelledTable, values: NDArray[np.float64], folds: NDArray[np.int64]
) -> list[str]:
    said: list[str] = []
    for t, target in enumerate(table.targets):
        seen = values[np.isfinite(values[:, t]), t]
        if seen.size == 0:
            raise InputError(
                f"{table.name}: no usable row has a value of {target.name!r}; leave it out of "
                "--target or mend the column"
            )
        if np.abs(seen).max() > MAX_VALUE:
            raise InputError(
                f"{table.name}: {target.name!r} holds {seen[np.abs(seen).argmax()]:g}, which "
                "single precision cannot work with; use another unit or --transform log10"
            )
        if np.ptp(seen) == 0:
            what = "one class" if target.kind == "classification" else "one value"
            nothing = f"{target.name!r} holds only {what} ({seen[0]:g}); there is nothing to learn"
            if len(table.targets) == 1:
                raise InputError(f"{table.name}: {nothing}")
            said.append(nothing)
        elif target.kind == "classification":
            rare = int(min(seen.sum(), seen.size - seen.sum()))
            if rare < len(set(folds.tolist())):
                said.append(f"{target.name!r}: the rarer class has only {rare} rows")
    return said

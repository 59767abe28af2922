"""Transfer molecules: unlabelled ones whose values the teacher supplies."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.chem.describing import describe_stream
from molscore.chem.graph import featurize_many
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.train.data import TrainingData
from molscore.train.listing import Listing

BLOCK: Final = 512
"""Molecules held as RDKit's at a time: they take far more memory than their packed graphs."""


def add_transfer(
    data: TrainingData,
    keys: Sequence[str],
    extra: Listing,
    policy: ChemPolicy,
    excluded: frozenset[str] = frozenset(),
    workers: int = 0,
) -> tuple[TrainingData, dict[str, Any]]:
    """Put transfer molecules behind the rows of a table: in no fold, without a value.

    A structure of the table is left out: every student but the one blind to it learns what its
    teacher says of it anyway, and that one shall not, for its error there is to be that on a
    new molecule. Of a structure that stands there twice the first is used.

    Args:
        data: the rows of the table.
        keys: structure key of each row.
        extra: the molecules.
        policy: how they are standardised.
        excluded: keys of structures that are not to be learned from, in whatever table they are.
        workers: processes that compute descriptors; 0 takes the available CPUs.

    Returns:
        The data with the molecules, and counts for the bundle.
    """
    counts = dict.fromkeys(("unusable_smiles", "excluded", "in_table_or_twice"), 0)
    graphs = [data.graphs]
    descriptors = [] if data.descriptors is None else [data.descriptors]

    def featurized() -> Iterator[list[Molecule]]:
        for molecules in _blocks(_choose(extra, policy, set(keys), excluded, counts)):
            graphs.append(featurize_many(molecules))
            yield molecules

    if descriptors:
        descriptors += describe_stream(featurized(), policy, workers)
    else:
        deque(featurized(), maxlen=0)
    n = sum(map(len, graphs[1:]))
    joined = TrainingData(
        graphs=PackedGraphs.concatenate(graphs),
        values=np.concatenate([data.values, np.full((n, data.n_targets), np.nan)]),
        is_class=data.is_class,
        folds=_with(data.folds, n),
        table_rows=_with(data.table_rows, n),
        descriptors=np.concatenate(descriptors) if descriptors else None,
    )
    about = {"table": extra.name, "sha256": extra.sha256, "rows_read": len(extra.smiles)}
    return joined, {**about, **counts, "used": n}


def _choose(
    extra: Listing,
    policy: ChemPolicy,
    seen: set[str],
    excluded: frozenset[str],
    counts: dict[str, int],
) -> Iterator[Molecule]:
    """Yield the molecules that are used, and count the others."""
    for row, smiles in enumerate(extra.smiles):
        molecule = parse_smiles(smiles, policy, row)
        if not isinstance(molecule, Molecule):
            counts["unusable_smiles"] += 1
        elif (key := structure_key(molecule)) in excluded:
            counts["excluded"] += 1
        elif key in seen:
            counts["in_table_or_twice"] += 1
        else:
            seen.add(key)
            yield molecule


def _blocks(molecules: Iterator[Molecule]) -> Iterator[list[Molecule]]:
    while block := list(islice(molecules, BLOCK)):
        yield block


def _with(numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return np.concatenate([numbers, np.full(n, -1, dtype=np.int64)])

"""Transfer molecules: unlabelled ones whose values the teacher supplies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from molscore.chem.descriptors import compute_descriptors
from molscore.chem.graph import featurize
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.train.data import TrainingData
from molscore.train.listing import Listing


def add_transfer(
    data: TrainingData, keys: Sequence[str], extra: Listing, policy: ChemPolicy
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

    Returns:
        The data with the molecules, and counts for the bundle.
    """
    seen = set(keys)
    counts = {"rows_read": len(extra.smiles), "unusable_smiles": 0, "in_table_or_twice": 0}
    molecules: list[Molecule] = []
    for row, smiles in enumerate(extra.smiles):
        molecule = parse_smiles(smiles, policy, row)
        if not isinstance(molecule, Molecule):
            counts["unusable_smiles"] += 1
        elif (key := structure_key(molecule)) in seen:
            counts["in_table_or_twice"] += 1
        else:
            seen.add(key)
            molecules.append(molecule)
    n = len(molecules)
    descriptors = data.descriptors
    if descriptors is not None and n:
        descriptors = np.concatenate([descriptors, compute_descriptors(molecules)])
    joined = TrainingData(
        graphs=PackedGraphs.concatenate(
            [data.graphs, PackedGraphs.pack([featurize(m) for m in molecules])]
        ),
        values=np.concatenate([data.values, np.full((n, data.n_targets), np.nan)]),
        is_class=data.is_class,
        folds=_with(data.folds, n),
        table_rows=_with(data.table_rows, n),
        descriptors=descriptors,
    )
    return joined, {"table": extra.name, "sha256": extra.sha256, **counts, "used": n}


def _with(numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return np.concatenate([numbers, np.full(n, -1, dtype=np.int64)])

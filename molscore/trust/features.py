"""Facts about a prediction that say how large its error may be.

All are known for a molecule that was never measured: what the model says of it, its size and kind,
and its nearest neighbours in the training set with their values. Their held-out errors would say
more, and too much: the expert that made a neighbour's error had learned the row itself, which no
new molecule can claim, and intervals would come out too narrow.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from molscore.chem.features import ATOM_FEATURES, CHARGE, ELEMENT
from molscore.chem.packed import PackedGraphs

Floats = NDArray[np.float64]

N_NEIGHBOURS: Final = 10

SHAPE: Final = ("prediction", "atoms", "charged atoms", "odd atoms", "hetero share", "cycles")
NEIGHBOURHOOD: Final = (
    *("nearest similarity", "mean similarity", "neighbours' spread", "distance from neighbours"),
)
FEATURES: Final = (*SHAPE, *NEIGHBOURHOOD)
"""In the order of the columns; a bundle without structures has those of `SHAPE` alone."""

_LEAST_WEIGHT: Final = 1e-3
_MOST_CHARGED: Final = 4
_MOST_ODD: Final = 2
_USUAL: Final = ("H", "C", "N", "O", "F", "P", "S", "Cl", "Br", "I")
_LABELS: Final = ATOM_FEATURES[ELEMENT].labels
_IS_ODD: Final = np.array([label not in _USUAL for label in _LABELS])
_IS_HETERO: Final = np.array([label not in ("C", "H") for label in _LABELS])
_IS_CHARGED: Final = np.array([label != "0" for label in ATOM_FEATURES[CHARGE].labels])


class Neighbours(NamedTuple):
    """The nearest training structures of n molecules, for one target.

    Attributes:
        similarity: float64 [n, k], the largest first.
        value: float64 [n, k], what was measured, in the unit the model learns; NaN for nothing.
    """

    similarity: Floats
    value: Floats


def shape_features(graphs: PackedGraphs) -> Floats:
    """Return the features of `SHAPE` behind the first, float64 [n, 5], of n molecules."""
    n_atoms = np.diff(graphs.atom_ptr)
    element, charge = graphs.atom_codes[:, ELEMENT], graphs.atom_codes[:, CHARGE]
    counts = np.stack([_IS_CHARGED[charge], _IS_ODD[element], _IS_HETERO[element]], axis=1)
    # No molecule is without atoms, which `reduceat` would count wrongly.
    charged, odd, hetero = np.add.reduceat(counts.astype(np.int64), graphs.atom_ptr[:-1]).T
    return np.stack(
        [
            n_atoms,
            np.minimum(charged, _MOST_CHARGED),
            np.minimum(odd, _MOST_ODD),
            hetero / n_atoms,
            np.diff(graphs.bond_ptr) - n_atoms,
        ],
        axis=1,
    ).astype(np.float64)


def difficulty_features(prediction: Floats, shape: Floats, neighbours: Neighbours | None) -> Floats:
    """Return the facts about n predictions of one target, float64 [n, n_features].

    Args:
        prediction: float64 [n], in the unit the model learns.
        shape: of `shape_features`.
        neighbours: None for a model that carries no structures.
    """
    known = np.concatenate([prediction[:, None], shape], axis=1)
    if neighbours is None:
        return known
    similarity = neighbours.similarity
    weight = np.maximum(similarity, _LEAST_WEIGHT) ** 2
    mean, spread = _weighted(weight, neighbours.value)
    near = np.stack(
        [
            similarity[:, 0],
            similarity.mean(axis=1),
            np.where(np.isnan(spread), 0.0, spread),
            np.where(np.isnan(mean), 0.0, np.abs(mean - prediction)),
        ],
        axis=1,
    )
    return np.concatenate([known, near], axis=1)


def _weighted(weight: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation [n] of the values [n, k] that are there; NaN of none."""
    there = np.isfinite(values)
    weight = np.where(there, weight, 0.0)
    values = np.where(there, values, 0.0)
    total = weight.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean = (weight * values).sum(axis=1) / total
        variance = (weight * (values - mean[:, None]) ** 2).sum(axis=1) / total
        return mean, np.sqrt(variance)

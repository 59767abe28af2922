"""Made-up graphs of given sizes, for tracing an export and checking it."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES
from molscore.chem.packed import GraphArrays, MolGraph, PackedGraphs

TRACED_SIZES: Final = (3, 7, 11)
"""Atoms per molecule while tracing. No size is 1 or equal to another, which would freeze it."""

CHECKED_SIZES: Final = ((1,), (1, 1, 1), (2,), (1, 30, 2, 1), (120,), tuple(range(1, 40)))
"""Batches for checking: single atoms, no bond at all, one molecule, many, a long one."""

TOLERANCE: Final = 1e-4
"""Largest difference a check allows, relative to the largest value (at least 1)."""


def example_arrays(
    sizes: Sequence[int], n_descriptors: int = 0, *, seed: int = 0
) -> tuple[GraphArrays, NDArray[np.float32] | None]:
    """Return a batch of random molecule-like graphs.

    Every graph is a random tree, from 6 atoms on with one ring closed; codes are drawn from the
    whole vocabulary.

    Args:
        sizes: atoms of each graph, at least 1.
        n_descriptors: columns of the descriptors, 0 for none.
        seed: of the draw.

    Returns:
        The batch, and descriptors float32 [n_graphs, n_descriptors] or None.
    """
    rng = np.random.default_rng(seed)
    graphs = []
    for n in sizes:
        bonds = [(int(rng.integers(max(0, i - 3), i)), i) for i in range(1, n)]
        if n > 5 and (0, n - 1) not in bonds:
            bonds.append((0, n - 1))
        graphs.append(
            MolGraph(
                atom_codes=_codes(rng, n, [len(f.labels) for f in ATOM_FEATURES]),
                bond_atoms=np.array(bonds, dtype=np.int32).reshape(-1, 2),
                bond_codes=_codes(rng, len(bonds), [len(f.labels) for f in BOND_FEATURES]),
            )
        )
    batch = PackedGraphs.pack(graphs).batch(np.arange(len(graphs)))
    if not n_descriptors:
        return batch, None
    return batch, rng.standard_normal((len(graphs), n_descriptors)).astype(np.float32)


def _codes(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> NDArray[np.uint8]:
    return np.stack([rng.integers(0, size, n, dtype=np.uint8) for size in sizes], axis=1)

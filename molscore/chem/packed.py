"""Molecule graphs as flat arrays: one molecule, a packed data set, a batch for a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES


class MolGraph(NamedTuple):
    """One molecule as integer codes.

    Attributes:
        atom_codes: uint8 [n_atoms, n_atom_features], codes of `ATOM_FEATURES`.
        bond_atoms: int32 [n_bonds, 2], atom indices of each bond, the smaller first.
        bond_codes: uint8 [n_bonds, n_bond_features], codes of `BOND_FEATURES`.
    """

    atom_codes: NDArray[np.uint8]
    bond_atoms: NDArray[np.int32]
    bond_codes: NDArray[np.uint8]


class GraphArrays(NamedTuple):
    """A batch of molecules as a model sees it; the field names are the ONNX input names.

    Attributes:
        atom_codes: int64 [n_atoms, n_atom_features].
        bond_codes: int64 [2 * n_bonds, n_bond_features]; bond k gives rows 2k (begin to end)
            and 2k + 1 (end to begin), so the reverse of a directed bond is a flip of the pair.
        edge_index: int64 [2, 2 * n_bonds]; row 0 source, row 1 target, indices in the batch.
        graph_id: int64 [n_atoms], 0 to n_graphs - 1, sorted: the molecule of each atom.
        n_atoms: int64 [n_graphs], atoms per molecule; its length is n_graphs.
    """

    atom_codes: NDArray[np.int64]
    bond_codes: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    graph_id: NDArray[np.int64]
    n_atoms: NDArray[np.int64]


@dataclass(frozen=True)
class PackedGraphs:
    """A data set of molecules in five flat arrays.

    Attributes:
        atom_codes: uint8 [n_atoms, n_atom_features], all molecules one after another.
        bond_atoms: int32 [n_bonds, 2], atom indices counted within the molecule.
        bond_codes: uint8 [n_bonds, n_bond_features].
        atom_ptr: int64 [n + 1]; molecule i owns atoms atom_ptr[i] to atom_ptr[i + 1] - 1.
        bond_ptr: int64 [n + 1]; the same for bonds.
    """

    atom_codes: NDArray[np.uint8]
    bond_atoms: NDArray[np.int32]
    bond_codes: NDArray[np.uint8]
    atom_ptr: NDArray[np.int64]
    bond_ptr: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.atom_ptr) - 1

    @classmethod
    def pack(cls, graphs: Sequence[MolGraph]) -> Self:
        """Join molecules into one data set, in the order given; no molecule is fine."""
        return cls._join(
            graphs, [len(g.atom_codes) for g in graphs], [len(g.bond_codes) for g in graphs]
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join data sets, in the order given."""
        return cls._join(
            parts,
            _counts([p.atom_ptr for p in parts]),
            _counts([p.bond_ptr for p in parts]),
        )

    @classmethod
    def _join(
        cls,
        parts: Sequence[MolGraph] | Sequence[Self],
        n_atoms: Sequence[int] | NDArray[np.int64],
        n_bonds: Sequence[int] | NDArray[np.int64],
    ) -> Self:
        """Join the arrays of `parts`; the counts are per molecule."""
        return cls(
            atom_codes=_joined(
                [p.atom_codes for p in parts], np.dtype(np.uint8), len(ATOM_FEATURES)
            ),
            bond_atoms=_joined([p.bond_atoms for p in parts], np.dtype(np.int32), 2),
            bond_codes=_joined(
                [p.bond_codes for p in parts], np.dtype(np.uint8), len(BOND_FEATURES)
            ),
            atom_ptr=pointers(n_atoms),
            bond_ptr=pointers(n_bonds),
        )

    def take(self, index: NDArray[np.int64]) -> Self:
        """Gather molecules into another data set.

        Args:
            index: int64 [n], molecules in the order wanted; repeats are allowed.

        Raises:
            IndexError: when an index is outside 0 to len(self) - 1.
        """
        index = np.asarray(index, dtype=np.int64)
        if index.size and (index.min() < 0 or index.max() >= len(self)):
            raise IndexError(f"molecule index outside 0 to {len(self) - 1}")
        n_atoms = self.atom_ptr[index + 1] - self.atom_ptr[index]
        n_bonds = self.bond_ptr[index + 1] - self.bond_ptr[index]
        atoms = ranges(self.atom_ptr[index], n_atoms)
        bonds = ranges(self.bond_ptr[index], n_bonds)
        return type(self)(
            atom_codes=self.atom_codes[atoms],
            bond_atoms=self.bond_atoms[bonds],
            bond_codes=self.bond_codes[bonds],
            atom_ptr=pointers(n_atoms),
            bond_ptr=pointers(n_bonds),
        )

    def batch(self, index: NDArray[np.int64]) -> GraphArrays:
        """Gather molecules into one batch for a model; arguments and errors are those of `take`."""
        taken = self.take(index)
        n_atoms, n_bonds = np.diff(taken.atom_ptr), np.diff(taken.bond_ptr)
        ends = taken.bond_atoms + np.repeat(taken.atom_ptr[:-1], n_bonds)[:, None]
        edge_index = np.empty((2, 2 * len(ends)), dtype=np.int64)
        edge_index[:, 0::2] = ends.T
        edge_index[:, 1::2] = ends.T[::-1]
        return GraphArrays(
            atom_codes=taken.atom_codes.astype(np.int64),
            bond_codes=np.repeat(taken.bond_codes.astype(np.int64), 2, axis=0),
            edge_index=edge_index,
            graph_id=np.repeat(np.arange(len(taken), dtype=np.int64), n_atoms),
            n_atoms=n_atoms,
        )

    def batches(self, parts: Sequence[NDArray[np.int64]]) -> list[GraphArrays]:
        """Return `[self.batch(part) for part in parts]`, gathered at once.

        Args:
            parts: int64 [n], molecules of each batch; at least one batch.

        Raises:
            IndexError: when an index is outside 0 to len(self) - 1.
        """
        index = np.concatenate(parts)
        whole = self.batch(index)
        graphs = pointers([len(part) for part in parts])
        atoms = pointers(whole.n_atoms)[graphs]
        bonds = pointers(2 * np.diff(self.bond_ptr)[index])[graphs]
        return [
            GraphArrays(
                atom_codes=whole.atom_codes[a:b],
                bond_codes=whole.bond_codes[c:d],
                edge_index=whole.edge_index[:, c:d] - a,
                graph_id=whole.graph_id[a:b] - first,
                n_atoms=whole.n_atoms[first:last],
            )
            for (first, last), (a, b), (c, d) in zip(
                pairwise(graphs), pairwise(atoms), pairwise(bonds), strict=True
            )
        ]


def join_batches(batches: Sequence[GraphArrays]) -> GraphArrays:
    """Make one batch of several, their molecules in the order given; at least one."""
    atoms = pointers([len(b.atom_codes) for b in batches])
    graphs = pointers([len(b.n_atoms) for b in batches])
    return GraphArrays(
        atom_codes=np.concatenate([b.atom_codes for b in batches]),
        bond_codes=np.concatenate([b.bond_codes for b in batches]),
        edge_index=np.concatenate(
            [b.edge_index + a for b, a in zip(batches, atoms[:-1], strict=True)], axis=1
        ),
        graph_id=np.concatenate(
            [b.graph_id + g for b, g in zip(batches, graphs[:-1], strict=True)]
        ),
        n_atoms=np.concatenate([b.n_atoms for b in batches]),
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: np.dtype[Any], width: int) -> NDArray[Any]:
    """Concatenate [*, width] arrays; an empty list gives shape (0, width)."""
    if not arrays:
        return np.empty((0, width), dtype=dtype)
    return np.concatenate(arrays).astype(dtype, copy=False)


def _counts(offsets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of several data sets to the counts of them all."""
    return np.concatenate([np.empty(0, dtype=np.int64), *map(np.diff, offsets)])


def pointers(counts: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """[n] counts to int64 [n + 1] offsets."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(np.asarray(counts, dtype=np.int64), out=offsets[1:])
    return offsets


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges starts[i] .. starts[i] + counts[i] - 1."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    shift: NDArray[np.int64] = np.repeat(starts - (ends - counts), counts)
    return np.arange(total, dtype=np.int64) + shift

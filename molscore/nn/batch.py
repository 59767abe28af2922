"""A batch of molecular graphs as tensors."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from molscore.chem.packed import GraphArrays


class GraphBatch(NamedTuple):
    """The torch twin of `molscore.chem.packed.GraphArrays`, field by field.

    Directed bonds come in pairs: rows 2k and 2k+1 are the two directions of bond k, so the
    reverse of a bond is a flip within its pair.
    """

    atom_codes: Tensor
    """int64 [n_atoms, n_atom_features]"""
    bond_codes: Tensor
    """int64 [2 * n_bonds, n_bond_features]"""
    edge_index: Tensor
    """int64 [2, 2 * n_bonds]: source and target atom of every directed bond"""
    graph_id: Tensor
    """int64 [n_atoms]: the molecule an atom belongs to"""
    n_atoms: Tensor
    """int64 [n_graphs]: atoms per molecule; its length is the number of molecules"""
    descriptors: Tensor | None = None
    """float32 [n_graphs, n_descriptors], scaled; None when the model takes none"""

    @property
    def n_graphs(self) -> int:
        """Number of molecules. Never read off `graph_id`: the last could be missing."""
        return self.n_atoms.shape[0]

    @classmethod
    def from_arrays(
        cls,
        arrays: GraphArrays,
        descriptors: NDArray[np.float32] | None = None,
        device: torch.device | str = "cpu",
    ) -> "GraphBatch":
        """Move numpy arrays to tensors on `device` (no copy on the CPU)."""
        atoms, bonds, edges, owner, sizes = (
            torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in arrays
        )
        extra = None if descriptors is None else torch.from_numpy(descriptors).to(device)
        return cls(atoms, bonds, edges, owner, sizes, extra)

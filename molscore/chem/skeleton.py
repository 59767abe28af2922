"""What RDKit knows of molecules and the feature codes are made of, as flat arrays."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from molscore.chem.features import BOND_FEATURES
from molscore.chem.packed import pointers

Ints = NDArray[np.int64]

_ORDER: Final = BOND_FEATURES[0]


def _order_codes() -> NDArray[np.uint8]:
    """[256]: the code of `order` of every number of RDKit's `BondType`."""
    codes = np.full(256, _ORDER.other, dtype=np.uint8)
    for name in ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", "DATIVE"):
        codes[int(Chem.BondType.names[name])] = _ORDER.labels.index(name.lower())
    for name in ("DATIVEL", "DATIVER", "DATIVEONE"):
        codes[int(Chem.BondType.names[name])] = _ORDER.labels.index("dative")
    return codes


ORDER_CODES: Final = _order_codes()


class Skeletons(NamedTuple):
    """Molecules one after another, atoms and bonds numbered as RDKit does within each.

    Attributes:
        atom_ptr: int64 [n + 1]; molecule i owns atoms atom_ptr[i] to atom_ptr[i + 1] - 1.
        bond_ptr: int64 [n + 1]; the same for bonds.
        n_rings: int64 [n].
        atomic_number: int64 [n_atoms], 1 to 118.
        charge: int64 [n_atoms], formal charge.
        hydrogens: int64 [n_atoms], those that are not atoms of the graph.
        chiral: bool [n_atoms], whether the atom has a chiral tag.
        ends: int64 [n_bonds, 2], the two atoms in any order.
        order: uint8 [n_bonds], codes of `order`.
        stereo: bool [n_bonds], whether the bond has stereo.
        ring_size: int64 [n_rings].
        ring_atoms: int64 [sum of ring_size], the atoms of every ring, in order around it.
    """

    atom_ptr: Ints
    bond_ptr: Ints
    n_rings: Ints
    atomic_number: Ints
    charge: Ints
    hydrogens: Ints
    chiral: NDArray[np.bool_]
    ends: Ints
    order: NDArray[np.uint8]
    stereo: NDArray[np.bool_]
    ring_size: Ints
    ring_atoms: Ints


def ask(mol: Any) -> Skeletons:
    """Ask every atom, bond and ring of one sanitised RDKit Mol: slow, for any molecule."""
    atoms = [
        (
            *(a.GetAtomicNum(), a.GetFormalCharge(), a.GetTotalNumHs()),
            a.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED,
        )
        for a in mol.GetAtoms()
    ]
    bonds = [
        (
            *(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondType())),
            b.GetStereo() != Chem.BondStereo.STEREONONE,
        )
        for b in mol.GetBonds()
    ]
    rings = mol.GetRingInfo().AtomRings()
    of_atoms = np.array(atoms, dtype=np.int64).reshape(-1, 4)
    of_bonds = np.array(bonds, dtype=np.int64).reshape(-1, 4)
    return Skeletons(
        atom_ptr=pointers([len(atoms)]),
        bond_ptr=pointers([len(bonds)]),
        n_rings=np.array([len(rings)]),
        atomic_number=of_atoms[:, 0],
        charge=of_atoms[:, 1],
        hydrogens=of_atoms[:, 2],
        chiral=of_atoms[:, 3] > 0,
        ends=of_bonds[:, :2],
        order=ORDER_CODES[of_bonds[:, 2]],
        stereo=of_bonds[:, 3] > 0,
        ring_size=np.array([len(ring) for ring in rings], dtype=np.int64),
        ring_atoms=np.array([i for ring in rings for i in ring], dtype=np.int64),
    )

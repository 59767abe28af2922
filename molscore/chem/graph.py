"""A standardised molecule as integer codes, independent of how its SMILES was written."""

from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from molscore.chem.features import (
    ATOM_FEATURES,
    BOND_FEATURES,
    ELEMENTS,
    FEATURIZER_VERSION,
    OTHER,
    Feature,
)
from molscore.chem.molecule import Molecule
from molscore.chem.packed import MolGraph

__all__ = [
    "ATOM_FEATURES",
    "BOND_FEATURES",
    "FEATURIZER_VERSION",
    "Feature",
    "MolGraph",
    "featurize",
]

MAX_CIP_STEPS: Final = 30_000
"""Bound of the CIP search, some 25 ms; molecules of even 3,000 u need about 100."""

_ROW_STARTS: Final = (1, 3, 11, 19, 37, 55, 87, 119)
_ELEMENT, _GROUP, _PERIOD, _DEGREE, _CHARGE, _HYDROGENS, _BONDING, _RING, _CIP = ATOM_FEATURES
_ORDER, _BOND_RING, _STEREO = BOND_FEATURES

# One incident bond of an order adds this much to its atom's sum, so that one sum over the
# bonds counts them all (up to 63 of a kind).
_ONE, _DOUBLE, _TRIPLE, _AROMATIC, _SPECIAL = 1, 1 << 6, 1 << 12, 1 << 18, 1 << 24
_BOND_WEIGHT: Final = np.array(
    [_ONE, _ONE + _DOUBLE, _ONE + _TRIPLE, _ONE + _AROMATIC, _ONE + _SPECIAL, _ONE + _SPECIAL],
    dtype=np.float64,
)
# Twice the bond order to the code of `order`.
_UNCLEAR: Final = 255
_CODE_OF_DOUBLED_ORDER: Final = np.array([_UNCLEAR, _UNCLEAR, 0, 3, 1, _UNCLEAR, 2], dtype=np.uint8)
_CODE_OF_TYPE: Final = {
    Chem.BondType.SINGLE: 0,
    Chem.BondType.DOUBLE: 1,
    Chem.BondType.TRIPLE: 2,
    Chem.BondType.AROMATIC: 3,
    Chem.BondType.DATIVE: 4,
    Chem.BondType.DATIVEL: 4,
    Chem.BondType.DATIVER: 4,
    Chem.BondType.DATIVEONE: 4,
}


def featurize(molecule: Molecule) -> MolGraph:
    """Turn a molecule into the codes of `ATOM_FEATURES` and `BOND_FEATURES`.

    Bonds come sorted by their atoms. Up to the numbering of the atoms the result is the same
    for every way of writing the SMILES.

    Args:
        molecule: a parsed molecule; it is not changed.

    Returns:
        Codes and bonds; a molecule without bonds gives bond arrays of no rows.

    Source: CIP labels by RDKit `rdCIPLabeler` (Hanson 2018, doi:10.1021/acs.jcim.8b00324),
        since the older labels of `AssignStereochemistry` are approximate.
    """
    mol = molecule.mol
    bond_atoms, order = _bonds(mol)
    atom_codes = _atom_codes(mol, bond_atoms, order)
    bond_codes = np.zeros((len(bond_atoms), len(BOND_FEATURES)), dtype=np.uint8)
    bond_codes[:, 0] = order
    _set_rings(mol, bond_atoms, atom_codes, bond_codes)
    if any(mark in molecule.smiles for mark in "@/\\"):
        _set_stereo(mol, bond_atoms, atom_codes, bond_codes)
    return MolGraph(atom_codes, bond_atoms, bond_codes)


def _bonds(mol: Any) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return atoms [n_bonds, 2], smaller index first, rows sorted, and order codes [n_bonds]."""
    orders = Chem.GetAdjacencyMatrix(mol, useBO=True, force=True)
    begin, end = orders.nonzero()
    upper = begin < end
    begin, end = begin[upper], end[upper]
    # The matrix shows a dative bond on its accepting side alone and hides bonds of order 0;
    # such molecules, and those with bonds of order 4 and up, are looked at bond by bond.
    if len(begin) == mol.GetNumBonds():
        forward = orders[begin, end]
        doubled = (forward + orders[end, begin]).astype(np.intp)
        if not len(doubled) or doubled.max() < len(_CODE_OF_DOUBLED_ORDER):
            codes = _CODE_OF_DOUBLED_ORDER[doubled]
            if codes.max(initial=0) < _UNCLEAR and (2 * forward == doubled).all():
                return np.stack((begin, end), axis=1).astype(np.int32), codes
    rows = sorted(
        (
            *sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx())),
            _CODE_OF_TYPE.get(b.GetBondType(), _ORDER.other),
        )
        for b in mol.GetBonds()
    )
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    return np.ascontiguousarray(table[:, :2]), table[:, 2].astype(np.uint8)


def _atom_codes(
    mol: Any, bond_atoms: NDArray[np.int32], order: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return all atom codes but ring and CIP, which are left 0."""
    sums = np.bincount(
        bond_atoms.ravel(), _BOND_WEIGHT[order].repeat(2), minlength=mol.GetNumAtoms()
    )
    rows = [
        _environment(atom.GetAtomicNum(), atom.GetFormalCharge(), atom.GetTotalNumHs(), bonds)
        for atom, bonds in zip(mol.GetAtoms(), sums.astype(np.int64).tolist(), strict=True)
    ]
    codes = np.frombuffer(b"".join(rows), dtype=np.uint8)
    return codes.reshape(-1, len(ATOM_FEATURES)).copy()


@lru_cache(maxsize=65_536)
def _environment(atomic_number: int, charge: int, hydrogens: int, bonds: int) -> bytes:
    """Return one row of atom codes; few distinct environments occur, so most are looked up.

    Args:
        atomic_number: 1 to 118.
        charge: formal charge.
        hydrogens: hydrogens that are not atoms of the graph.
        bonds: sum of `_BOND_WEIGHT` over the atom's bonds.
    """
    element, group, period = _element_codes()[atomic_number]
    return bytes(
        (
            *(element, group, period),
            min(bonds & 63, _DEGREE.other),
            charge + 2 if -2 <= charge <= 3 else _CHARGE.other,
            min(hydrogens, _HYDROGENS.other),
            _bonding_code(bonds),
            *(0, 0),
        )
    )


def _bonding_code(bonds: int) -> int:
    special, aromatic = bonds >> 24, bonds >> 18 & 63
    triple, double = bonds >> 12 & 63, bonds >> 6 & 63
    if special:
        return _BONDING.labels.index("dative")
    label = {
        (0, 0, 0): "single",
        (0, 1, 0): "double",
        (0, 2, 0): "two-double",
        (0, 0, 1): "triple",
        (2, 0, 0): "aromatic-2",
        (3, 0, 0): "aromatic-3",
        (2, 1, 0): "aromatic-double",
    }.get((aromatic, double, triple), OTHER)
    return _BONDING.labels.index(label)


@cache
def _element_codes() -> NDArray[np.uint8]:
    """[119, 3]: element, group and period codes of every atomic number."""
    table = Chem.GetPeriodicTable()
    codes = np.empty((_ROW_STARTS[-1], 3), dtype=np.uint8)
    codes[:] = _ELEMENT.other, _GROUP.other, _PERIOD.other
    for i, symbol in enumerate(ELEMENTS):
        codes[table.GetAtomicNumber(symbol), 0] = i
    for period, (first, last) in enumerate(pairwise(_ROW_STARTS)):
        for z in range(first, last):
            codes[z, 2] = period
            group = _group(period + 1, z - first + 1)
            if group is not None:
                codes[z, 1] = group - 1
    return codes


def _group(period: int, place: int) -> int | None:
    """Return the IUPAC group, 1 to 18, of the element at a place in its row; None: f-block."""
    if period == 1:
        return 1 if place == 1 else 18
    if place <= 2:
        return place
    if period <= 3:
        return place + 10
    if period <= 5:
        return place
    return place - 14 if place > 17 else None


def _set_rings(
    mol: Any,
    bond_atoms: NDArray[np.int32],
    atom_codes: NDArray[np.uint8],
    bond_codes: NDArray[np.uint8],
) -> None:
    """Write the size of the smallest ring through every atom and bond."""
    rings = mol.GetRingInfo().AtomRings()
    if not rings:
        return
    n_atoms = len(atom_codes)
    ring_of_pair = np.zeros((n_atoms, n_atoms), dtype=np.uint8)
    for ring in sorted(rings, key=len, reverse=True):  # the smallest is written last
        code = len(ring) - 2 if len(ring) <= 8 else _RING.other
        members, following = list(ring), [*ring[1:], ring[0]]
        atom_codes[members, 7] = code
        ring_of_pair[members, following] = code
        ring_of_pair[following, members] = code
    bond_codes[:, 1] = ring_of_pair[bond_atoms[:, 0], bond_atoms[:, 1]]


def _set_stereo(
    mol: Any,
    bond_atoms: NDArray[np.int32],
    atom_codes: NDArray[np.uint8],
    bond_codes: NDArray[np.uint8],
) -> None:
    """Write CIP labels; `other` stands for stereo that has no label within the bound."""
    labelled = Chem.Mol(mol)
    try:
        rdCIPLabeler.AssignCIPLabels(labelled, maxRecursiveIterations=MAX_CIP_STEPS)
        complete = True
    except RuntimeError:  # MaxIterationsExceeded: labels so far depend on the atom order
        complete = False
    for i, atom in enumerate(labelled.GetAtoms()):
        if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED:
            atom_codes[i, 8] = _label_code(atom, _CIP, complete)
    row_of = {tuple(pair): row for row, pair in enumerate(bond_atoms.tolist())}
    for bond in labelled.GetBonds():
        if bond.GetStereo() != Chem.BondStereo.STEREONONE:
            pair = sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
            bond_codes[row_of[tuple(pair)], 2] = _label_code(bond, _STEREO, complete)


def _label_code(item: Any, feature: Feature, complete: bool) -> int:
    if not complete or not item.HasProp("_CIPCode"):
        return feature.other
    label = item.GetProp("_CIPCode")
    return feature.labels.index(label) if label in feature.labels else feature.other

"""Standardised molecules as integer codes, independent of how their SMILES was written."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from molscore.chem.binary import read_binary
from molscore.chem.features import (
    ATOM_FEATURES,
    BOND_FEATURES,
    ELEMENTS,
    FEATURIZER_VERSION,
    Feature,
)
from molscore.chem.molecule import Molecule
from molscore.chem.packed import MolGraph, PackedGraphs
from molscore.chem.skeleton import Ints, Skeletons, ask
from molscore.chem.stereo import cip_codes

__all__ = [
    "ATOM_FEATURES",
    "BOND_FEATURES",
    "FEATURIZER_VERSION",
    "Feature",
    "MolGraph",
    "featurize",
    "featurize_many",
]

MOLECULES_AT_ONCE: Final = 512
"""Bounds the memory of the arrays in between; more at once is no faster."""

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
# How many aromatic, double and triple bonds an atom has: its label of `bonding`.
_PATTERNS: Final = {
    (0, 0, 0): "single",
    (0, 1, 0): "double",
    (0, 2, 0): "two-double",
    (0, 0, 1): "triple",
    (2, 0, 0): "aromatic-2",
    (3, 0, 0): "aromatic-3",
    (2, 1, 0): "aromatic-double",
}
_NO_RING: Final = 255  # larger than any code, for minima


def featurize(molecule: Molecule) -> MolGraph:
    """Turn one molecule into codes; `featurize_many` says how."""
    packed = featurize_many([molecule])
    return MolGraph(packed.atom_codes, packed.bond_atoms, packed.bond_codes)


def featurize_many(molecules: Sequence[Molecule]) -> PackedGraphs:
    """Turn molecules into the codes of `ATOM_FEATURES` and `BOND_FEATURES`.

    Bonds come sorted by their atoms. Up to the numbering of the atoms the result is the same
    for every way of writing the SMILES, and whatever the other molecules are.

    Args:
        molecules: parsed molecules; they are not changed.

    Returns:
        Codes and bonds, in the order given.

    Source: CIP labels by RDKit `rdCIPLabeler` (Hanson 2018, doi:10.1021/acs.jcim.8b00324),
        since the older labels of `AssignStereochemistry` are approximate.
    """
    return PackedGraphs.concatenate(
        [
            _featurize_some(molecules[start : start + MOLECULES_AT_ONCE])
            for start in range(0, len(molecules), MOLECULES_AT_ONCE)
        ]
    )


def _featurize_some(molecules: Sequence[Molecule]) -> PackedGraphs:
    skeletons, unread = read_binary([m.mol for m in molecules])
    packed = _codes(skeletons, molecules)
    if not unread:
        return packed
    asked = [_codes(ask(molecules[i].mol), molecules[i : i + 1]) for i in unread]
    place = np.arange(len(molecules))
    place[unread] = len(molecules) + np.arange(len(unread))
    return PackedGraphs.concatenate([packed, *asked]).take(place)


def _codes(skeletons: Skeletons, molecules: Sequence[Molecule]) -> PackedGraphs:
    """Give all codes of some molecules."""
    first = np.repeat(skeletons.atom_ptr[:-1], np.diff(skeletons.bond_ptr))[:, None]
    ends = np.sort(skeletons.ends, axis=1) + first
    keys = _bond_keys(ends, len(skeletons.atomic_number))
    by_key = np.argsort(keys)  # molecules stay in their order, as their atoms do
    atom_codes = _atom_codes(skeletons, ends)
    bond_codes = np.zeros((len(ends), len(BOND_FEATURES)), dtype=np.uint8)
    bond_codes[:, 0] = skeletons.order[by_key]
    _set_rings(skeletons, keys[by_key], atom_codes, bond_codes)
    _set_stereo(skeletons, molecules, by_key, atom_codes, bond_codes)
    return PackedGraphs(
        atom_codes=atom_codes,
        bond_atoms=(ends - first)[by_key].astype(np.int32),
        bond_codes=bond_codes,
        atom_ptr=skeletons.atom_ptr,
        bond_ptr=skeletons.bond_ptr,
    )


def _bond_keys(ends: Ints, n_atoms: int) -> Ints:
    """Give each pair of atoms, the smaller first, a number that sorts as the pairs do."""
    keys: Ints = ends[:, 0] * n_atoms + ends[:, 1]
    return keys


def _atom_codes(skeletons: Skeletons, ends: Ints) -> NDArray[np.uint8]:
    """Return all atom codes but ring and CIP, which are left 0."""
    n_atoms = len(skeletons.atomic_number)
    weights = _BOND_WEIGHT[skeletons.order]
    sums = np.bincount(ends.ravel(), weights.repeat(2), minlength=n_atoms).astype(np.int64)
    charge = skeletons.charge
    codes = np.zeros((n_atoms, len(ATOM_FEATURES)), dtype=np.uint8)
    codes[:, :3] = _element_codes()[skeletons.atomic_number]
    codes[:, 3] = np.minimum(sums & 63, _DEGREE.other)
    codes[:, 4] = np.where((charge >= -2) & (charge <= 3), charge + 2, _CHARGE.other)
    codes[:, 5] = np.minimum(skeletons.hydrogens, _HYDROGENS.other)
    codes[:, 6] = _bonding_codes(sums)
    return codes


def _bonding_codes(sums: Ints) -> NDArray[np.uint8]:
    """Return the code of `bonding` of each atom's sum of `_BOND_WEIGHT`."""
    table = _bonding_table()
    counts = (sums >> 18 & 63, sums >> 6 & 63, sums >> 12 & 63)  # as in `_PATTERNS`
    place = tuple(np.minimum(c, n - 1) for c, n in zip(counts, table.shape, strict=True))
    codes: NDArray[np.uint8] = np.where(
        sums >= _SPECIAL, _BONDING.labels.index("dative"), table[place]
    )
    return codes


@cache
def _bonding_table() -> NDArray[np.uint8]:
    """[aromatic, double, triple]: code of `bonding`; the last of each axis stands for more."""
    shape = tuple(max(pattern[axis] for pattern in _PATTERNS) + 2 for axis in range(3))
    table = np.full(shape, _BONDING.other, dtype=np.uint8)
    for pattern, label in _PATTERNS.items():
        table[pattern] = _BONDING.labels.index(label)
    return table


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
    skeletons: Skeletons,
    sorted_keys: Ints,
    atom_codes: NDArray[np.uint8],
    bond_codes: NDArray[np.uint8],
) -> None:
    """Write the size of the smallest ring through every atom and bond."""
    sizes = skeletons.ring_size
    if not len(sizes):
        return
    shift = np.repeat(np.repeat(skeletons.atom_ptr[:-1], skeletons.n_rings), sizes)
    member = skeletons.ring_atoms + shift
    last = np.cumsum(sizes) - 1
    following = np.append(member[1:], 0)
    following[last] = member[last - sizes + 1]  # the ring closes
    code = np.repeat(np.where(sizes <= 8, sizes - 2, _RING.other), sizes).astype(np.uint8)
    _set_least(atom_codes[:, 7], member, code)
    pair = np.sort(np.stack((member, following), axis=1), axis=1)
    row = np.searchsorted(sorted_keys, _bond_keys(pair, len(atom_codes)))
    _set_least(bond_codes[:, 1], row, code)


def _set_least(column: NDArray[np.uint8], place: Ints, code: NDArray[np.uint8]) -> None:
    """Write the least code of every place; the others stay."""
    least = np.full(len(column), _NO_RING, dtype=np.uint8)
    np.minimum.at(least, place, code)
    found = least != _NO_RING
    column[found] = least[found]


def _set_stereo(
    skeletons: Skeletons,
    molecules: Sequence[Molecule],
    by_key: Ints,
    atom_codes: NDArray[np.uint8],
    bond_codes: NDArray[np.uint8],
) -> None:
    """Write CIP labels."""
    atoms, bonds = skeletons.chiral.nonzero()[0], skeletons.stereo.nonzero()[0]
    if not len(atoms) and not len(bonds):
        return
    row_of = np.empty_like(by_key)
    row_of[by_key] = np.arange(len(by_key))
    atom_ptr, bond_ptr = skeletons.atom_ptr, skeletons.bond_ptr
    atoms_until, bonds_until = np.searchsorted(atoms, atom_ptr), np.searchsorted(bonds, bond_ptr)
    touched = (np.diff(atoms_until) > 0) | (np.diff(bonds_until) > 0)
    for i in touched.nonzero()[0].tolist():
        if not any(mark in molecules[i].smiles for mark in "@/\\"):
            continue
        chiral = atoms[atoms_until[i] : atoms_until[i + 1]]
        stereo = bonds[bonds_until[i] : bonds_until[i + 1]]
        atom_codes[chiral, 8], bond_codes[row_of[stereo], 2] = cip_codes(
            molecules[i].mol, (chiral - atom_ptr[i]).tolist(), (stereo - bond_ptr[i]).tolist()
        )

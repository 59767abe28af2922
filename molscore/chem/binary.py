"""Read what featurising needs out of RDKit's binary form of a molecule, many at a time.

Writing that form (`Mol.ToBinary`) is one call and takes a fifth of the time of parsing a
SMILES; asking the atoms and bonds one by one takes as long as parsing. The form, little-endian:

    mark, 0, version (three)                      five int32
    atoms, bonds                                  two int32
    flags, tag                                    two bytes
    every atom: atomic number, flags              two bytes
                which fields follow               int32
                the fields                        a byte each
    tag                                           one byte
    every bond: begin, end, flags                 three bytes
                order, direction                  a byte each, where the flags say so
                stereo, n, n atoms                2 + n bytes, where the flags say so
    tag                                           one byte
    rings                                         int32
    every ring: n, n atoms                        1 + n bytes
    tag                                           one byte

Whatever differs from this in a molecule (another version, more than 255 atoms, queries,
isotopes, stereo groups) makes that molecule `unread`, never wrong: every byte that says what
follows is checked, and so is the end.
"""

from collections.abc import Sequence
from itertools import product
from struct import pack
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from molscore.chem.packed import pointers, ranges
from molscore.chem.skeleton import ORDER_CODES, Skeletons

VERSION: Final = (16, 4, 0)
"""The version of the form that is understood; RDKit raises it with every change."""

_WHAT: Final = int(Chem.PropertyPickleOptions.NoProps) | int(
    Chem.PropertyPickleOptions.NoConformers
)
_HEADER: Final = pack("<I4i", 0xDEADBEEF, 0, *VERSION)
_AFTER_COUNTS, _BEFORE_BONDS, _BEFORE_RINGS, _END = b"\x80\x01", b"\x0b", b"\x42", b"\x16"
_COUNTS_AT: Final = len(_HEADER)
_ATOMS_AT: Final = _COUNTS_AT + 8 + len(_AFTER_COUNTS)

# Flags of an atom; others announce queries, atom maps and the like.
_AROMATIC, _NO_IMPLICIT = 0x40, 0x20
# Fields of an atom, in the order written. Absent, they are 0 (the hybridisation: sp3).
_CHARGE, _CHIRAL, _HYBRIDISATION, _EXPLICIT_H = 2, 4, 8, 16
_EXPLICIT_VALENCE, _IMPLICIT_H, _RADICALS = 32, 64, 128
_FIELDS: Final = (
    *(_CHARGE, _CHIRAL, _HYBRIDISATION, _EXPLICIT_H),
    *(_EXPLICIT_VALENCE, _IMPLICIT_H, _RADICALS),
)
_ATOM_HEAD: Final = 6
# Flags of a bond; others announce queries.
_BOND_AROMATIC, _CONJUGATED, _NOT_SINGLE, _DIRECTED, _STEREO = 0x40, 0x20, 8, 4, 2
_BOND_HEAD: Final = 3


def _atom_sizes() -> dict[bytes, int]:
    """Bytes of an atom, by its flags and the number that says which fields follow."""
    return {
        pack("<Bi", flags, fields): _ATOM_HEAD + fields.bit_count()
        for flags in (0, _AROMATIC, _NO_IMPLICIT, _AROMATIC | _NO_IMPLICIT)
        for fields in range(0, 256, 2)
    }


def _bond_sizes() -> dict[int, int]:
    """Bytes of a bond by its flags, without those of the atoms that define its stereo."""
    sizes = {}
    for aromatic, conjugated, order, direction, stereo in product((0, 1), repeat=5):
        flags = (
            aromatic * _BOND_AROMATIC
            | conjugated * _CONJUGATED
            | order * _NOT_SINGLE
            | direction * _DIRECTED
            | stereo * _STEREO
        )
        sizes[flags] = _BOND_HEAD + order + direction + 2 * stereo
    return sizes


_ATOM_SIZE: Final = _atom_sizes()
_BOND_SIZE: Final = _bond_sizes()
# [256]: where a field stands in its atom, if it is there.
_FIELD_AT: Final = {
    field: np.array([_ATOM_HEAD + (fields & (field - 1)).bit_count() for fields in range(256)])
    for field in _FIELDS
}


class _NotUnderstoodError(Exception):
    """The binary form of a molecule holds something else than described above."""


class _Places(NamedTuple):
    """Where records begin in the joined binary forms."""

    atoms: list[int]
    bonds: list[int]
    rings: list[int]


def read_binary(mols: Sequence[Any]) -> tuple[Skeletons, list[int]]:
    """Read sanitised RDKit Mols.

    Returns:
        The skeletons, and the indices of the molecules that are not understood, which have no
        atom, bond or ring there.
    """
    forms = [mol.ToBinary(_WHAT) for mol in mols]
    data = b"".join(forms)
    places = _Places([], [], [])
    counts = np.zeros((len(forms), 3), dtype=np.int64)
    unread: list[int] = []
    start = 0
    for i, form in enumerate(forms):
        try:
            found = _walk(form, start)
        except (_NotUnderstoodError, KeyError, IndexError):
            unread.append(i)
        else:
            for whole, part in zip(places, found, strict=True):
                whole.extend(part)
            counts[i] = [len(part) for part in found]
        start += len(form)
    return _gather(np.frombuffer(data, dtype=np.uint8), counts, places), unread


def _walk(form: bytes, start: int) -> _Places:
    """Find the records of one molecule.

    Args:
        form: its binary form.
        start: what to add to the places found.

    Raises:
        _NotUnderstoodError, KeyError, IndexError: when the form is not the one described.
    """
    _expect(form, 0, _HEADER)
    n_atoms = int.from_bytes(form[_COUNTS_AT : _COUNTS_AT + 4], "little")
    n_bonds = int.from_bytes(form[_COUNTS_AT + 4 : _COUNTS_AT + 8], "little")
    if n_atoms > 255:  # from here on atoms are numbered in four bytes instead of one
        raise _NotUnderstoodError
    _expect(form, _COUNTS_AT + 8, _AFTER_COUNTS)
    at = _ATOMS_AT
    atoms, bonds, rings = [], [], []
    for _ in range(n_atoms):
        atoms.append(start + at)
        at += _ATOM_SIZE[form[at + 1 : at + 6]]
    _expect(form, at, _BEFORE_BONDS)
    at += 1
    for _ in range(n_bonds):
        bonds.append(start + at)
        flags = form[at + 2]
        at += _BOND_SIZE[flags]
        if flags & _STEREO:
            at += form[at - 1]
    _expect(form, at, _BEFORE_RINGS)
    n_rings = int.from_bytes(form[at + 1 : at + 5], "little")
    at += 5
    for _ in range(n_rings):
        rings.append(start + at)
        at += 1 + form[at]
    if form[at:] != _END:
        raise _NotUnderstoodError
    return _Places(atoms, bonds, rings)


def _expect(form: bytes, at: int, what: bytes) -> None:
    if not form.startswith(what, at):
        raise _NotUnderstoodError


def _gather(data: NDArray[np.uint8], counts: NDArray[np.int64], places: _Places) -> Skeletons:
    """Take the fields out of all records at once."""
    atom, bond, ring = (np.array(found, dtype=np.int64) for found in places)
    flags, fields = data[atom + 1], data[atom + 2]

    def field(which: int) -> NDArray[np.uint8]:
        values: NDArray[np.uint8] = data[atom + _FIELD_AT[which][fields]]
        return np.where(fields & which, values, np.uint8(0))

    implicit = np.where(flags & _NO_IMPLICIT, 0, field(_IMPLICIT_H))
    of_bond = data[bond + 2]
    order = np.where(of_bond & _NOT_SINGLE, data[bond + _BOND_HEAD], int(Chem.BondType.SINGLE))
    ring_size = data[ring].astype(np.int64)
    return Skeletons(
        atom_ptr=pointers(counts[:, 0]),
        bond_ptr=pointers(counts[:, 1]),
        n_rings=counts[:, 2],
        atomic_number=data[atom].astype(np.int64),
        charge=field(_CHARGE).view(np.int8).astype(np.int64),
        hydrogens=field(_EXPLICIT_H).astype(np.int64) + implicit,
        chiral=(fields & _CHIRAL) > 0,
        ends=np.stack((data[bond], data[bond + 1]), axis=1).astype(np.int64),
        order=ORDER_CODES[order],
        stereo=(of_bond & _STEREO) > 0,
        ring_size=ring_size,
        ring_atoms=data[ranges(ring + 1, ring_size)].astype(np.int64),
    )

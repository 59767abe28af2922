"""Elements and their charges: which a training set holds, and which of a molecule it does not."""

from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from molscore.chem.features import ATOM_FEATURES, CHARGE, ELEMENT
from molscore.chem.molecule import Molecule
from molscore.chem.packed import PackedGraphs

AtomKind = tuple[int, int]
"""Atomic number and formal charge."""


def atom_kinds(molecules: Iterable[Molecule]) -> frozenset[AtomKind]:
    """Return the kinds of atoms in molecules."""
    return frozenset(kind for molecule in molecules for kind in _kinds(molecule))


class KnownAtoms:
    """The kinds of atoms in a training set.

    Args:
        kinds: those.
    """

    def __init__(self, kinds: Iterable[AtomKind]) -> None:
        self.kinds = frozenset(kinds)
        self._elements = {number for number, _ in self.kinds}
        elements, charges = ATOM_FEATURES[ELEMENT], ATOM_FEATURES[CHARGE]
        # By code, so that whole chunks are looked through at once; `other` is never known.
        self._known = np.zeros((len(elements), len(charges)), dtype=np.bool_)
        for number, charge in self.kinds:
            element = _symbol(number)
            if element in elements.labels and str(charge) in charges.labels:
                row, column = elements.labels.index(element), charges.labels.index(str(charge))
                self._known[row, column] = True

    def strangers(self, molecules: list[Molecule], packed: PackedGraphs) -> dict[int, str]:
        """Return what is strange about molecules: index -> words, for those with strange atoms.

        Args:
            molecules: n of them.
            packed: their graphs.
        """
        codes = packed.atom_codes
        known = self._known[codes[:, ELEMENT], codes[:, CHARGE]]
        doubtful = np.unique(np.searchsorted(packed.atom_ptr, np.flatnonzero(~known), "right") - 1)
        words = {int(i): self._describe(_kinds(molecules[i])) for i in doubtful}
        return {index: text for index, text in words.items() if text}

    def _describe(self, kinds: Iterable[AtomKind]) -> str:
        strange = sorted(set(kinds) - self.kinds)
        elements = sorted({number for number, _ in strange} - self._elements)
        charges = [(n, charge) for n, charge in strange if n in self._elements]
        said = [f"element {_symbol(number)}" for number in elements]
        said += [f"charge {charge:+d} on {_symbol(number)}" for number, charge in charges]
        return ", ".join(said) + " not in the training set" if said else ""


def kinds_to_array(kinds: Iterable[AtomKind]) -> NDArray[np.int64]:
    """Return kinds as int64 [n, 2], sorted."""
    return np.array(sorted(kinds), dtype=np.int64).reshape(-1, 2)


def _kinds(molecule: Molecule) -> set[AtomKind]:
    return {(a.GetAtomicNum(), a.GetFormalCharge()) for a in molecule.mol.GetAtoms()}


@cache
def _symbol(number: int) -> str:
    return str(Chem.GetPeriodicTable().GetElementSymbol(number))

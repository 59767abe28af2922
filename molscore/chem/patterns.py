"""SMARTS patterns, many of them, counted in one molecule after a look at its atoms and bonds.

Most of some 200 patterns do not match a given molecule, and most of those cannot, because the
molecule has no atom, or no bond with its two atoms, for one of theirs. So every atom and bond a
pattern asks for has a bit, every atom and bond of a molecule a mask of the bits that accept it,
and a pattern is searched only when all its bits are among the masks. A pattern of one atom or
one bond is counted by its bit alone. Masks are kept by kind of atom and bond, of which a large
table has some thousands. RDKit itself decides whether a bit accepts an atom or a bond; a
question whose answer may depend on more than the kind is taken as accepted.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rdkit import Chem

MAX_MATCHES: Final = 1000
"""RDKit's bound on the matches of a pattern; no count is larger."""

_MAX_ALTERNATIVES: Final = 64
"""Ways to satisfy a pattern that are told apart; beyond, its atoms are not looked at."""

# What a kind of atom decides: the questions of `DescribeQuery` that `_kind` can answer.
_DECIDED: Final = frozenset(
    (
        *("AtomAnd", "AtomOr", "AtomNull", "AtomType", "AtomAtomicNum", "AtomFormalCharge"),
        *("AtomHCount", "AtomInNRings", "AtomInRing", "AtomIsAliphatic", "AtomIsAromatic"),
        *("AtomIsotope", "AtomTotalDegree", "AtomExplicitDegree", "AtomTotalValence"),
    )
)
_BOND_DECIDED: Final = frozenset(
    (
        *("BondAnd", "BondOr", "BondNull", "BondOrder", "BondInRing", "SingleOrAromaticBond"),
        *("SingleOrDoubleBond", "DoubleOrAromaticBond", "SingleOrDoubleOrAromaticBond"),
    )
)
_MAX_KINDS: Final = 1 << 16
"""Kinds remembered; isotopes and charges without end must not fill the memory."""

_ALWAYS: Final[tuple[int, ...]] = (0,)
"""The alternatives of a pattern about whose atoms nothing is known."""

Kind = tuple[Any, ...]


class Pattern(NamedTuple):
    """One pattern.

    Attributes:
        query: RDKit Mol.
        needs: masks of what is asked for; one of them must be there as a whole.
        bit: the mask of a pattern of one atom or bond that its bit decides, else 0.
    """

    query: Any
    needs: tuple[int, ...]
    bit: int


class _Bond(NamedTuple):
    """What a pattern asks of a bond: the bits of its two atoms, and RDKit's query bond."""

    begin: int
    end: int
    query: Any


class _Questions:
    """All that patterns ask for, one bit each, and the masks of the kinds seen so far."""

    def __init__(self) -> None:
        self._bits: dict[Any, int] = {}
        self._atoms: list[tuple[int, Any]] = []
        self._bonds: list[tuple[int, _Bond]] = []
        self._atom_masks: dict[Kind, int] = {}
        self._bond_masks: dict[Kind, int] = {}
        self._kept: list[Any] = []  # the molecules the queries belong to

    def __len__(self) -> int:
        return len(self._atoms) + len(self._bonds)

    def atom_bit(self, smarts: str) -> int:
        """Return the bit of an atom, 0 if its kind does not decide."""
        if smarts not in self._bits:
            mol = Chem.MolFromSmarts(smarts)
            atom = None if mol is None else mol.GetAtomWithIdx(0)
            if atom is None or not _is_decided(atom, _DECIDED):
                return self._bits.setdefault(smarts, 0)
            self._kept.append(mol)
            self._atoms.append((self._new_bit(smarts), atom))
        return self._bits[smarts]

    def bond_bit(self, begin: int, end: int, bond: Any) -> int:
        """Return the bit of a bond between atoms of these bits, 0 if its kind does not decide."""
        if not begin or not end or not _is_decided(bond, _BOND_DECIDED):
            return 0
        key = min(begin, end), max(begin, end), bond.DescribeQuery()
        if key not in self._bits:
            self._kept.append(bond.GetOwningMol())
            self._bonds.append((self._new_bit(key), _Bond(begin, end, bond)))
        return self._bits[key]

    def _new_bit(self, key: Any) -> int:
        bit = self._bits[key] = 1 << len(self)
        self._atom_masks.clear()
        self._bond_masks.clear()
        return bit

    def atom_mask(self, kind: Kind, atom: Any) -> int:
        """Return the bits that accept an atom of this kind."""
        mask = self._atom_masks.get(kind)
        if mask is None:
            mask = sum(bit for bit, query in self._atoms if query.Match(atom))
            _remember(self._atom_masks, kind, mask)
        return mask

    def bond_mask(self, kind: Kind, bond: Any) -> int:
        """Return the bits that accept a bond; its kind starts with the masks of its atoms."""
        mask = self._bond_masks.get(kind)
        if mask is None:
            one, other = kind[:2]
            mask = sum(
                bit
                for bit, (begin, end, query) in self._bonds
                if ((one & begin and other & end) or (one & end and other & begin))
                and query.Match(bond)
            )
            _remember(self._bond_masks, kind, mask)
        return mask


def _remember(masks: dict[Kind, int], kind: Kind, mask: int) -> None:
    if len(masks) >= _MAX_KINDS:
        masks.clear()
    masks[kind] = mask


@functools.cache
def _questions() -> _Questions:
    return _Questions()


def read_pattern(query: Any) -> Pattern:
    """Prepare a pattern.

    Args:
        query: RDKit Mol, from SMARTS.
    """
    questions, needs, bits = _questions(), _ALWAYS, []
    for atom in query.GetAtoms():
        smarts = atom.GetSmarts()
        smarts = smarts if smarts.startswith("[") else f"[{smarts}]"
        bits.append(questions.atom_bit(smarts))
        needs = _both(needs, (bits[-1],) if bits[-1] else _needs_of_atom(smarts[1:-1]))
    of_bonds = [
        questions.bond_bit(bits[bond.GetBeginAtomIdx()], bits[bond.GetEndAtomIdx()], bond)
        for bond in query.GetBonds()
    ]
    for bit in of_bonds:
        needs = _both(needs, (bit,))
    alone = bits if len(bits) == 1 else of_bonds if len(bits) == 2 and len(of_bonds) == 1 else [0]
    return Pattern(query, needs, alone[0])


def _is_decided(query: Any, names: frozenset[str]) -> bool:
    lines = query.DescribeQuery().splitlines()
    return all(line.split()[0] in names for line in lines if line.strip())


def _needs_of_atom(text: str) -> tuple[int, ...]:
    """Return what an atom needs that asks for its surroundings: `C;$(CO),$(CN);!$(CF)`."""
    needs = _ALWAYS
    for clause in _split(text, ";"):
        of_clause: tuple[int, ...] = ()
        for alternative in _split(clause, ","):
            of_alternative = _ALWAYS
            for factor in _split(alternative, "&"):
                of_alternative = _both(of_alternative, _needs_of_factor(factor))
            of_clause += of_alternative
        needs = _both(needs, _ALWAYS if 0 in of_clause else of_clause)
    return needs


def _needs_of_factor(text: str) -> tuple[int, ...]:
    if text.startswith("$("):
        inner = Chem.MolFromSmarts(text[2:-1])
        return _ALWAYS if inner is None else read_pattern(inner).needs
    return (_questions().atom_bit(f"[{text}]"),)


def _both(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    """Return the alternatives of needing both."""
    joined = {one | other for one in some for other in others}
    return some if len(joined) > _MAX_ALTERNATIVES else tuple(sorted(joined))


def _split(text: str, mark: str) -> list[str]:
    """Split at a mark outside of parentheses and brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == mark and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


class Matcher:
    """One molecule, ready to be asked for patterns.

    Args:
        mol: RDKit Mol.
        atoms: its atoms.
        bonds: its bonds.
        bond_ends: the indices of their atoms.
    """

    def __init__(
        self,
        mol: Any,
        atoms: Sequence[Any],
        bonds: Sequence[Any],
        bond_ends: Sequence[tuple[int, int]],
    ) -> None:
        self._mol, self._atoms, self._bonds, self._bond_ends = mol, atoms, bonds, bond_ends
        self._masks: list[int] = []
        self._lacking = self._n_questions = 0

    def _look(self) -> None:
        """Ask the atoms and bonds all that any pattern read so far asks."""
        questions, rings = _questions(), self._mol.GetRingInfo()
        of_atoms = [
            questions.atom_mask(_kind(atom, rings.NumAtomRings(i)), atom)
            for i, atom in enumerate(self._atoms)
        ]
        of_bonds = [
            questions.bond_mask(
                (of_atoms[begin], of_atoms[end], bond.GetBondType(), bond.IsInRing()), bond
            )
            for bond, (begin, end) in zip(self._bonds, self._bond_ends, strict=True)
        ]
        self._masks = of_atoms + of_bonds
        self._lacking = ~functools.reduce(operator.or_, self._masks, 0)
        self._n_questions = len(questions)

    def possible(self, patterns: Sequence[Pattern]) -> list[int]:
        """Return the indices of the patterns whose atoms and bonds are there."""
        if self._n_questions != len(_questions()):
            self._look()
        lacking = self._lacking
        return [
            i
            for i, (_, needs, _) in enumerate(patterns)
            if not needs[0] & lacking
            or (len(needs) > 1 and any(not need & lacking for need in needs))
        ]

    def count(self, pattern: Pattern) -> int:
        """Return the number of different matches of a possible pattern, `MAX_MATCHES` at most."""
        if pattern.bit:
            bit = pattern.bit
            return min(sum([1 for mask in self._masks if mask & bit]), MAX_MATCHES)
        return len(self._mol.GetSubstructMatches(pattern.query))

    def has(self, pattern: Pattern) -> bool:
        """Whether there is a match of a possible pattern."""
        return bool(pattern.bit) or self._mol.HasSubstructMatch(pattern.query)


def _kind(atom: Any, n_rings: int) -> Kind:
    return (
        atom.GetAtomicNum(),
        atom.GetIsAromatic(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(True),
        atom.GetDegree(),
        atom.GetTotalDegree(),
        atom.GetTotalValence(),
        atom.GetIsotope(),
        n_rings,
    )

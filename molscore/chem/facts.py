"""What several descriptors of one molecule need, each computed once and only when asked for."""

from functools import cache, cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors, rdPartialCharges
from rdkit.Chem.EState.EState import GetPrincipleQuantumNumber

from molscore.chem.patterns import Matcher
from molscore.chem.skeleton import ORDER_CODES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_APART: Final = 1e6
"""RDKit's distance between atoms of different fragments is above this."""

_ORDERS: Final = np.array([1.0, 2.0, 3.0, 1.5])
"""Bond order of the first codes of the bond feature `order`."""

MAX_WALKS: Final = 100_000
"""Most walks of four bonds that are listed at a time, some 20 MB."""


class Facts:
    """One molecule, and what was found out about it so far.

    Everything is in the order of its atoms, and sums are taken in that order too, so that they
    equal RDKit's to the last bit.

    Attributes:
        mol: RDKit Mol, which gains cached properties.
    """

    def __init__(self, mol: Any) -> None:
        self.mol = mol

    @cached_property
    def atoms(self) -> list[Any]:
        """RDKit's atoms [n]; making these objects costs more than asking them."""
        return list(self.mol.GetAtoms())

    @cached_property
    def bonds(self) -> list[Any]:
        """RDKit's bonds [n_bonds], in its order."""
        return list(self.mol.GetBonds())

    @cached_property
    def bond_ends(self) -> list[tuple[int, int]]:
        """The two atoms of each of `bonds`."""
        return [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in self.bonds]

    @cached_property
    def numbers(self) -> Integers:
        """Atomic numbers [n]."""
        return np.array([atom.GetAtomicNum() for atom in self.atoms])

    @cached_property
    def degrees(self) -> Integers:
        """Neighbours in the graph [n]."""
        return np.array([atom.GetDegree() for atom in self.atoms])

    @cached_property
    def hydrogens(self) -> Integers:
        """Hydrogens that are not atoms of the graph [n]."""
        return np.array([atom.GetTotalNumHs() for atom in self.atoms])

    @cached_property
    def outer_electrons(self) -> Integers:
        """Outer electrons of the free atoms [n]."""
        return _element_table()[0][self.numbers]

    @cached_property
    def valence_electrons(self) -> Integers:
        """Outer electrons less hydrogens [n]: the delta^v of Kier and Hall."""
        return self.outer_electrons - self.hydrogens

    @cached_property
    def has_hydrogen_atoms(self) -> bool:
        """Whether a hydrogen is an atom of the graph, as in H2 or a proton."""
        return bool((self.numbers == 1).any())

    @cached_property
    def is_plain(self) -> bool:
        """Whether all atoms are heavy and all bonds single, double, triple or aromatic.

        For the rest RDKit has special cases, and is asked itself.
        """
        codes = self._sorted_bonds[1]
        return codes.max(initial=0) < len(_ORDERS) and not self.has_hydrogen_atoms

    @cached_property
    def walk_bound(self) -> int:
        """No molecule has more walks of four bonds than this."""
        return 2 * len(self.bonds) * int(self.degrees.max(initial=1) - 1) ** 3

    @property
    def few_paths(self) -> bool:
        """Whether its paths may be listed; only a hub of dozens of bonds has too many."""
        return self.is_plain and self.walk_bound <= MAX_WALKS

    @cached_property
    def _sorted_bonds(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        ends = np.sort(np.array(self.bond_ends, dtype=np.int32).reshape(-1, 2), axis=1)
        types = np.array([int(bond.GetBondType()) for bond in self.bonds], dtype=np.intp)
        rows = np.lexsort((ends[:, 1], ends[:, 0]))
        return ends[rows], ORDER_CODES[types][rows]

    @property
    def bond_atoms(self) -> NDArray[np.int32]:
        """Atoms of each bond [n_bonds, 2], the smaller first, rows sorted."""
        return self._sorted_bonds[0]

    @cached_property
    def bond_orders(self) -> Floats:
        """Order of each bond [n_bonds], 1.5 where aromatic; of a plain molecule only."""
        return _ORDERS[self._sorted_bonds[1]]

    @cached_property
    def distances(self) -> Floats:
        """Bonds between two atoms [n, n]; huge between fragments."""
        matrix: Floats = Chem.GetDistanceMatrix(self.mol)
        return matrix

    @cached_property
    def bond_distances(self) -> Floats:
        """Distances [n, n] where a bond is as long as 1 over its order (Balaban)."""
        matrix: Floats = Chem.GetDistanceMatrix(
            self.mol, useBO=True, useAtomWts=False, force=True, prefix="Balaban"
        )
        return matrix

    @cached_property
    def adjacency(self) -> Floats:
        """Whether two atoms are bonded [n, n], 0 or 1."""
        matrix: Floats = Chem.GetAdjacencyMatrix(self.mol).astype(np.float64)
        return matrix

    @cached_property
    def has_charge_parameters(self) -> bool:
        """Whether Gasteiger has parameters for all atoms; zinc, say, has a charge without them."""
        try:
            rdPartialCharges.ComputeGasteigerCharges(self.mol, throwOnParamFailure=True)
        except ValueError:
            rdPartialCharges.ComputeGasteigerCharges(self.mol)
            return False
        return True

    @cached_property
    def charges(self) -> Floats:
        """Gasteiger's partial charges [n], NaN where they cannot be told."""
        _ = self.has_charge_parameters  # which computes them
        return np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in self.atoms])

    @cached_property
    def crippen(self) -> Floats:
        """Wildman and Crippen's logP and refractivity of atom and hydrogen [n + n_hydrogens, 2].

        The hydrogens follow the atoms. None of the patterns of an atom that is not a hydrogen
        tells whether its hydrogens are written out, so these rows serve both with and without.
        """
        with_hydrogens = Chem.AddHs(self.mol)
        return np.array(rdMolDescriptors._CalcCrippenContribs(with_hydrogens))

    @cached_property
    def crippen_totals(self) -> list[float]:
        """LogP and molar refractivity of the molecule."""
        totals: list[float] = ordered_sum(self.crippen).tolist()
        return totals

    @cached_property
    def rotatable_bonds(self) -> int:
        """Rotatable bonds by RDKit's default definition, the strict one."""
        return int(rdMolDescriptors.CalcNumRotatableBonds(self.mol))

    @cached_property
    def matcher(self) -> Matcher:
        """Its atoms and bonds, ready to be asked for patterns."""
        return Matcher(self.mol, self.atoms, self.bonds, self.bond_ends)

    @cached_property
    def hall_kier_alpha(self) -> float:
        """Sum over the atoms of how much larger than sp3 carbon they are."""
        return float(rdMolDescriptors.CalcHallKierAlpha(self.mol))

    @cached_property
    def areas(self) -> Floats:
        """Labute's surface of each atom [n], without its hydrogens."""
        of_atoms, _ = rdMolDescriptors._CalcLabuteASAContribs(self.mol, True)
        return np.array(list(of_atoms))

    @cached_property
    def estates(self) -> Floats:
        """E-state index of each atom [n]: S_i = I_i + sum_j (I_i - I_j) / (d_ij + 1)^2.

        Source: Hall, Mohney and Kier, doi:10.1021/ci00001a012; RDKit `EStateIndices`.
        """
        quantum = _element_table()[1][self.numbers]
        with np.errstate(divide="ignore", invalid="ignore"):
            intrinsic = (4.0 / (quantum * quantum) * self.valence_electrons + 1) / self.degrees
        intrinsic[self.degrees == 0] = 0.0
        steps = self.distances + 1
        # Row i of this matrix changes the sums of all atoms, one row after the other.
        shares = (intrinsic - intrinsic[:, None]) / (steps * steps)
        shares[steps >= _APART] = 0.0
        indices: Floats = ordered_sum(shares) + intrinsic
        return indices


def ordered_sum(values: Any) -> Any:
    """Return the sum along the first axis, added up from its start; 0 if there is nothing.

    `np.sum` adds in pairs, whose last digit differs from a loop's.
    """
    table = np.asarray(values, dtype=np.float64)
    return np.cumsum(table, axis=0)[-1] if len(table) else np.zeros(table.shape[1:])[()]


@cache
def _element_table() -> tuple[Integers, Integers]:
    """Return outer electrons and principal quantum number by atomic number, each [119]."""
    table: Any = Chem.GetPeriodicTable()
    quantum: Any = GetPrincipleQuantumNumber
    numbers = range(119)
    electrons = np.array([table.GetNOuterElecs(number) for number in numbers])
    return electrons, np.array([quantum(number) for number in numbers])

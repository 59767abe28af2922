"""Which molecules count as the same structure, and which share a scaffold."""

import hashlib
from typing import Any

from rdkit import Chem, rdBase
from rdkit.Chem import rdinchi

from molscore.chem.molecule import Molecule
from molscore.chem.standardise import parent


def structure_key(molecule: Molecule) -> str:
    """Return a text that is equal for equal structures: the InChIKey's first block.

    It covers the connectivity of the standardised parent: salts, charges that a proton makes,
    stereo and mobile hydrogens make no difference. A structure InChI cannot express gets the
    hash of its parent's canonical SMILES instead, in lower case so the two never meet.

    Source: RDKit `MolToInchiKey`.
    """
    with rdBase.BlockLogs():
        mol = parent(molecule.mol)
        key = str(rdinchi.MolToInchiKey(mol))
        if key:
            return key[:14]
        smiles = Chem.MolToSmiles(mol, isomericSmiles=False)
    return hashlib.sha256(smiles.encode()).hexdigest()[:14]


def scaffold(molecule: Molecule) -> str:
    """Return the Bemis-Murcko scaffold as SMILES without stereo, "" without rings.

    Rings, what links them, and atoms double-bonded to either. RDKit's `MurckoDecompose` gives
    the same through the distances of all pairs of atoms, 5 s for 1,000 atoms.

    Source: Bemis and Murcko, doi:10.1021/jm9602928.
    """
    mol = molecule.mol
    if not mol.GetRingInfo().NumRings():
        return ""
    with rdBase.BlockLogs():
        # Brackets in the SMILES fix hydrogen counts, which the core would inherit; a canonical
        # SMILES has brackets only where they are needed.
        plain = Chem.MolFromSmiles(Chem.MolToSmiles(mol, isomericSmiles=False))
        return str(Chem.MolToSmiles(_core(mol if plain is None else plain), isomericSmiles=False))


def _core(mol: Any) -> Any:
    """Cut away side chains; an atom whose hydrogens RDKit does not fill up gets one for each."""
    neighbors = [[n.GetIdx() for n in atom.GetNeighbors()] for atom in mol.GetAtoms()]
    outside = _side_chains(neighbors)
    core = Chem.RWMol(mol)
    core.BeginBatchEdit()
    for i in outside:
        anchors = [j for j in neighbors[i] if j not in outside]
        bonds = [mol.GetBondBetweenAtoms(i, j).GetBondType() for j in anchors]
        if Chem.BondType.DOUBLE in bonds:
            continue
        core.RemoveAtom(i)
        for atom in map(core.GetAtomWithIdx, anchors):
            if atom.GetNoImplicit() or (atom.GetIsAromatic() and atom.GetAtomicNum() != 6):
                atom.SetNumExplicitHs(atom.GetNumExplicitHs() + 1)
    core.CommitBatchEdit()
    return core


def _side_chains(neighbors: list[list[int]]) -> set[int]:
    """Return the atoms that go when atoms with one neighbour are taken off until none is left."""
    degree = [len(n) for n in neighbors]
    outside: set[int] = set()
    ends = [i for i, d in enumerate(degree) if d <= 1]
    while ends:
        i = ends.pop()
        outside.add(i)
        for j in neighbors[i]:
            degree[j] -= 1
            if degree[j] == 1 and j not in outside:
                ends.append(j)
    return outside

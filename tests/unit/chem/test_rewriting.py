"""Rewriting a SMILES changes no code: the same graph comes out, its atoms renumbered."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rdkit import Chem, rdBase

from molscore.chem.graph import ATOM_FEATURES, BOND_FEATURES, featurize
from molscore.chem.parse import Molecule, parse_smiles, scaffold, structure_key
from molscore.chem.policy import ChemPolicy

PROJECT = Path(__file__).resolve().parents[3]
SAMPLE_DATA = PROJECT / "sample_data"
SHARED_DATA = PROJECT.parent / "shared" / "data"  # may be absent: then the pool is smaller

HARD = (
    # metals, hypervalence, odd bonds
    *("c1ccccn1->[Fe]", "O->[Mg+2]<-O", "[Cl-]->[Ga+3](<-[Cl-])<-[Cl-]", "CC[Mg]Br", "C~C"),
    *("N[Pt@SP1](N)(Cl)Cl", "FS(F)(F)(F)(F)F", "[O-][Cl+3]([O-])([O-])[O-]", "C[As](C)C"),
    *("CCC[Sn](CCC)(CCC)c1ccncc1", "[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1", "[Hg](C)C"),
    # no bonds, hydrogen, radicals, salts
    *("[Na+].[Cl-]", "O.O.O", "[H][H]", "[H+].[Cl-]", "[CH3]", "[O][O]", "[NH4+].[Cl-]"),
    *("CC(=O)[O-].[Na+]", "C[NH+]1C=NC=C1.F[P-](F)(F)(F)(F)F"),
    # stereo: rings, pseudo-asymmetry, sulfur, cumulenes, macrocycles, conjugation
    *("C[C@H]1CC[C@@H](C)CC1", "C[C@H](O)[C@H](O)[C@@H](C)O", "C[S@](=O)c1ccccc1"),
    *("O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O", "CC=[C@]=CC", "F/C(Cl)=C(\\Br)I"),
    *("O=C1CCCCCCCCCC\\C=C/CCC1", "C1CCCCCC\\C=C/CCC1", "C\\C=C1/CC2CC1C=C2"),
    *("C/C=C/C=C\\C", "C/C(=N\\O)c1ccccc1", "N=C(N)NCCC[C@H](N)C(=O)O", "CC/N=C/C"),
    "CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)O",
    "C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O",
    "C[C@@H]1CC[C@H]2[C@@H](C)C(=O)O[C@@H]3O[C@@]4(C)CC[C@@H]1[C@]23OO4",
    "OC[C@H]1O[C@@H](O[C@H]2[C@H](O)[C@@H](O)[C@H](O)O[C@@H]2CO)[C@H](O)[C@@H](O)[C@@H]1O",
    # rings and aromaticity
    *("C12C3C4C1C5C2C3C45", "C1CC2CCC1CC2", "C1CC1C1(CC1)C1CC1", "C1#CCCCCCC1"),
    *("C1=CC=CC=CC=C1", "c1cc2ccc3cccc4ccc(c1)c2c34", "B1C=CC=CN1", "c1cc[se]c1"),
    *("Oc1ncnc2[nH]cnc12", "[nH]1cccc1-c1ccc[nH]1", "[O-][n+]1ccccc1", "C1=CC=C[CH+]C=C1"),
    "C1=CC2=CC3=CC=C(N3)C=C3C=CC(=N3)C=C3C=CC(N3)=CC1=N2",
    "O=C1c2ccccc2C(=O)c2c1ccc1[nH]c3c([nH]c21)ccc1c3C(=O)c2ccccc2C1=O",
)


def column(path, name):
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [row[name].strip() for row in csv.DictReader(file)]


POOL = sorted(
    {
        *HARD,
        *column(SAMPLE_DATA / "aqsoldb.csv", "smiles"),
        *column(SHARED_DATA / "esol.csv", "smiles"),
        *column(SHARED_DATA / "aqsoldb.csv", "SMILES"),
    }
)
POLICIES = (
    ChemPolicy(),
    ChemPolicy(stereo="drop"),
    ChemPolicy(salts="parent"),
    ChemPolicy(neutralize=True),
)
STYLES = ("random", "kekulised", "all brackets", "explicit H")


def rewrite(mol, style, seed):
    """Write a molecule in a random order.

    Returns the SMILES and, for each heavy atom it will be read as, the atom of `mol` it was.
    """
    mol = Chem.Mol(mol)
    if style == "explicit H":
        n_atoms, mol = mol.GetNumAtoms(), Chem.AddHs(mol)
    else:
        n_atoms = mol.GetNumAtoms()
    if style == "kekulised":
        Chem.Kekulize(mol, clearAromaticFlags=True)
    rdBase.SeedRandomNumberGenerator(seed)
    text = Chem.MolToSmiles(
        mol,
        doRandom=True,
        canonical=False,
        kekuleSmiles=style == "kekulised",
        allHsExplicit=style == "all brackets",
    )
    order = mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    return text, np.array([i for i in order if i < n_atoms], dtype=np.int64)


ATOM_STEREO, BOND_STEREO = len(ATOM_FEATURES) - 1, len(BOND_FEATURES) - 1


def certificate(graph):
    """Sorted colours of atoms after repeated refinement by bonds and neighbours."""
    colours = [hash(tuple(row)) for row in graph.atom_codes.tolist()]
    around = [[] for _ in colours]
    for (i, j), codes in zip(graph.bond_atoms.tolist(), graph.bond_codes.tolist(), strict=True):
        around[i].append((tuple(codes), j))
        around[j].append((tuple(codes), i))
    for _ in range(8):
        colours = [
            hash((colour, tuple(sorted((codes, colours[j]) for codes, j in bonds))))
            for colour, bonds in zip(colours, around, strict=True)
        ]
    return sorted(colours)


def bond_rows(graph, name_of=None):
    names = np.arange(len(graph.atom_codes)) if name_of is None else name_of
    ends = np.sort(names[graph.bond_atoms], axis=1)
    return sorted(map(tuple, np.hstack([ends, graph.bond_codes[:, :BOND_STEREO]]).tolist()))


def assert_same_graph(text, policy, style, seed):
    molecule = parse_smiles(text, policy)
    if not isinstance(molecule, Molecule):
        return
    graph = featurize(molecule)
    with rdBase.BlockLogs():
        rewritten, old_of = rewrite(molecule.mol, style, seed)
    again = parse_smiles(rewritten, policy)
    assert isinstance(again, Molecule), (rewritten, again)
    found = featurize(again)
    # Atom by atom, but for stereo: RDKit may write a meso compound as its mirror image, the
    # same molecule with R and S in each other's place. The certificate covers that.
    np.testing.assert_array_equal(
        found.atom_codes[:, :ATOM_STEREO], graph.atom_codes[old_of, :ATOM_STEREO], rewritten
    )
    assert bond_rows(found, old_of) == bond_rows(graph), rewritten
    assert certificate(found) == certificate(graph), rewritten
    assert structure_key(again) == structure_key(molecule), rewritten
    assert scaffold(again) == scaffold(molecule), rewritten


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.sampled_from(POOL), st.sampled_from(POLICIES), st.integers(1, 2**31 - 1))
@example("O=C1CCCCCCCCCC\\C=C/CCC1", ChemPolicy(), 5)
def test_any_molecule(style, text, policy, seed):
    assert_same_graph(text, policy, style, seed)


@pytest.mark.parametrize("text", HARD)
def test_hard_molecules(text):
    for policy in POLICIES:
        for style in STYLES:
            for seed in range(1, 4):
                assert_same_graph(text, policy, style, seed)


@pytest.mark.parametrize("text", ["Oc1ccccn1", "CC(=O)CC(C)=O", "Nc1nc2[nH]cnc2c(=O)[nH]1"])
@pytest.mark.parametrize("style", STYLES)
def test_canonical_tautomers(text, style):
    for seed in range(1, 6):
        assert_same_graph(text, ChemPolicy(tautomers="canonical"), style, seed)


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_every_molecule_of_the_pool(style):
    for seed, text in enumerate(POOL, start=1):
        assert_same_graph(text, ChemPolicy(), style, seed)

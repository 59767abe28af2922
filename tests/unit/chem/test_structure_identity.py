"""Structure keys and scaffolds."""

import pytest
from rdkit import Chem

from molscore.chem.parse import parse_smiles, scaffold, structure_key
from molscore.chem.policy import ChemPolicy

POLICY = ChemPolicy()


def key(text):
    return structure_key(parse_smiles(text, POLICY))


def core(text):
    return scaffold(parse_smiles(text, POLICY))


@pytest.mark.parametrize(
    "texts",
    [
        ("CC(=O)Oc1ccccc1C(=O)O", "OC(=O)c1ccccc1OC(C)=O"),
        ("CC(=O)O", "CC(=O)[O-].[Na+]", "[K+].CC(=O)[O-]"),
        ("C[C@H](F)Cl", "C[C@@H](F)Cl", "CC(F)Cl"),
        ("CCO", "CC([2H])O", "[CH3:1][CH2:2][OH:3]"),
        ("CC(=O)Nc1ccccc1", "O=C(C)Nc1ccccc1.Cl"),
    ],
)
def test_equal_structures_share_a_key(texts):
    assert len({key(text) for text in texts}) == 1


def test_the_key_is_the_first_block_of_the_inchikey():
    assert key("CCO") == Chem.MolToInchiKey(Chem.MolFromSmiles("CCO"))[:14]
    assert key("CCO") != key("COC")


def test_a_structure_without_inchi_has_a_key_of_its_own():
    dative = key("c1ccccn1->[Fe]")
    assert dative == key("[Fe]<-n1ccccc1")
    assert dative != key("c1ccccn1->[Co]")
    assert len(dative) == 14
    assert dative == dative.lower()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CCO", ""),
        ("[Na+].[Cl-]", ""),
        ("CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1"),
        ("Cn1cccc1", "c1cc[nH]c1"),
        ("CC1CCC(=O)CC1", "O=C1CCCCC1"),
        ("C[C@H](c1ccccc1)C1CC1", "c1ccc(CC2CC2)cc1"),
        ("c1ccccc1.CC", "c1ccccc1"),
        ("COC(=O)C=C1CCCC1", "C=C1CCCC1"),
    ],
)
def test_scaffold(text, expected):
    assert core(text) == expected
    molecule = parse_smiles(text, POLICY)
    bracketed = Chem.MolToSmiles(molecule.mol, allHsExplicit=True)
    assert core(bracketed) == expected


def test_scaffold_equals_rdkit():
    texts = [
        "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
        "CN1CCC23C4Oc5c(O)ccc(CC1C2C=CC4O)c35",
        "O=C1c2ccccc2C(=O)c2c1cccc2NC",
        "CC[N+](CC)(CC)Cc1ccccc1.[Cl-]",
        "C[Si]1(C)O[Si](C)(C)O[Si](C)(C)O1",
        "O=S(=O)(N)c1cc2c(cc1Cl)NCNS2(=O)=O",
    ]
    for text in texts:
        expected = Chem.MurckoDecompose(Chem.MolFromSmiles(text))
        assert core(text) == Chem.MolToSmiles(expected)


def test_a_large_molecule_does_not_cost_seconds(process_seconds):
    molecule = parse_smiles("c1ccc(cc1)C" * 120 + "C", POLICY)
    with process_seconds(2.0):
        assert scaffold(molecule).count("c") > 700
        structure_key(molecule)

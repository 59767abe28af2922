"""Atom and bond codes against RDKit's own getters."""

import csv
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from molscore.chem import binary, graph
from molscore.chem.graph import ATOM_FEATURES, BOND_FEATURES, featurize, featurize_many
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import Molecule, parse_smiles
from molscore.chem.policy import ChemPolicy

POLICY = ChemPolicy()
SAMPLE = Path(__file__).resolve().parents[3] / "sample_data" / "aqsoldb.csv"


def atom_labels(text, name):
    graph = featurize(parse_smiles(text, POLICY))
    return labels(graph.atom_codes, ATOM_FEATURES, name)


def bond_labels(text, name):
    graph = featurize(parse_smiles(text, POLICY))
    return labels(graph.bond_codes, BOND_FEATURES, name)


def labels(codes, features, name):
    column = [f.name for f in features].index(name)
    return [features[column].labels[code] for code in codes[:, column]]


def known(value, feature):
    return str(value) if str(value) in feature.labels else "other"


@pytest.mark.parametrize("text", ["C", "O", "[Na+]", "N", "[H+]", "[Na+].[Cl-]", "[U]"])
def test_no_bonds_give_empty_arrays(text):
    graph = featurize(parse_smiles(text, POLICY))
    assert graph.atom_codes.shape == (text.count("[") or 1, len(ATOM_FEATURES))
    assert graph.bond_atoms.shape == (0, 2)
    assert graph.bond_codes.shape == (0, len(BOND_FEATURES))
    assert [a.dtype for a in graph] == [np.uint8, np.int32, np.uint8]


def test_every_feature_ends_in_other_and_fits_a_byte():
    for feature in (*ATOM_FEATURES, *BOND_FEATURES):
        assert feature.labels[-1] == "other"
        assert feature.other == len(feature) - 1 < 256
        assert len(set(feature.labels)) == len(feature)


def test_codes_equal_rdkit_on_sample_data():
    with SAMPLE.open(newline="") as file:
        texts = [row["smiles"] for row in csv.DictReader(file)][::25]
    assert len(texts) > 300
    for text in texts:
        molecule = parse_smiles(text, POLICY)
        assert isinstance(molecule, Molecule), text
        assert_equals_getters(molecule)


@pytest.mark.parametrize(
    "text",
    [
        "c1ccccn1->[Fe]",
        "O->[Mg+2]<-O",
        "[Cl-]->[Ga+3](<-[Cl-])<-[Cl-]",
        "C~C",
        "[Fe]$[Fe]",
        "FS(F)(F)(F)(F)F",
        "C1#CCCCCCC1",
        "[O-][Cl+3]([O-])([O-])[O-]",
        "[H][H]",
        "C12C3C4C1C5C2C3C45",
    ],
)
def test_codes_equal_rdkit_on_unusual_molecules(text):
    assert_equals_getters(parse_smiles(text, POLICY))


def assert_equals_getters(molecule):
    mol, graph = molecule.mol, featurize(molecule)
    rings = mol.GetRingInfo()
    by_name = {f.name: f for f in (*ATOM_FEATURES, *BOND_FEATURES)}

    def column(name):
        return labels(graph.atom_codes, ATOM_FEATURES, name)

    atoms = list(mol.GetAtoms())
    for name, values in {
        "element": [a.GetSymbol() for a in atoms],
        "degree": [a.GetDegree() for a in atoms],
        "charge": [a.GetFormalCharge() for a in atoms],
        "hydrogens": [a.GetTotalNumHs() for a in atoms],
        "ring": [rings.MinAtomRingSize(a.GetIdx()) for a in atoms],
    }.items():
        assert column(name) == [known(v, by_name[name]) for v in values], molecule.smiles
    kinds = {
        "SINGLE": "single",
        "DOUBLE": "double",
        "TRIPLE": "triple",
        "AROMATIC": "aromatic",
        "DATIVE": "dative",
    }
    expected = sorted(
        (
            *sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx())),
            kinds.get(b.GetBondType().name, "other"),
            known(rings.MinBondRingSize(b.GetIdx()), BOND_FEATURES[1]),
        )
        for b in mol.GetBonds()
    )
    found = zip(
        *graph.bond_atoms.T.tolist(),
        labels(graph.bond_codes, BOND_FEATURES, "order"),
        labels(graph.bond_codes, BOND_FEATURES, "ring"),
        strict=True,
    )
    assert list(found) == expected, molecule.smiles


def test_periodic_table():
    table = Chem.GetPeriodicTable()
    rows = {}
    for z in range(1, 119):
        text = f"[{table.GetElementSymbol(z)}]"
        rows[text[1:-1]] = atom_labels(text, "group")[0], atom_labels(text, "period")[0]
    assert rows["H"] == ("1", "1")
    assert rows["He"] == ("18", "1")
    assert rows["B"] == ("13", "2")
    assert rows["Cl"] == ("17", "3")
    assert rows["Sc"] == ("3", "4")
    assert rows["Zn"] == ("12", "4")
    assert rows["I"] == ("17", "5")
    assert rows["Ba"] == ("2", "6")
    assert rows["Gd"] == ("other", "6")
    assert rows["Hf"] == ("4", "6")
    assert rows["Hg"] == ("12", "6")
    assert rows["Rn"] == ("18", "6")
    assert rows["U"] == ("other", "7")
    assert rows["Og"] == ("18", "7")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("C", ["single"]),
        ("C=O", ["double", "double"]),
        ("C=C=O", ["double", "two-double", "double"]),
        ("C#N", ["triple", "triple"]),
        ("c1ccccc1", ["aromatic-2"] * 6),
        ("O=c1cccc[nH]1", ["double", "aromatic-double", *["aromatic-2"] * 5]),
        ("O->[Mg+2]", ["dative", "dative"]),
        ("O=[Xe](=O)=O", ["double", "other", "double", "double"]),
    ],
)
def test_bonding_pattern(text, pattern):
    assert atom_labels(text, "bonding") == pattern


def test_fused_atoms_have_three_aromatic_bonds():
    assert atom_labels("c1ccc2ccccc2c1", "bonding").count("aromatic-3") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N[C@@H](C)C(=O)O", ["none", "S", "none", "none", "none", "none"]),
        ("N[C@H](C)C(=O)O", ["none", "R", "none", "none", "none", "none"]),
        ("C[C@H](O)[C@H](O)[C@@H](C)O", ["R", "S", "s"]),
        ("CC(O)F", []),
        ("F[C@](F)(Cl)Br", []),
    ],
)
def test_cip_labels(text, expected):
    found = atom_labels(text, "cip")
    if len(expected) != len(found):
        found = sorted(label for label in found if label != "none")
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("F/C=C/F", "E"), ("F/C=C\\F", "Z"), ("FC=CF", "none")]
)
def test_double_bond_labels(text, expected):
    assert bond_labels(text, "stereo")[1] == expected


def test_labels_beyond_the_bound_are_other(process_seconds):
    # A spiro centre between two equal rings that are told apart only by their stereo: the CIP
    # rules would go on for seconds.
    aryl = "Oc1ccc(cc1C(C)(C)c1ccccc1)C(C)(C)c1ccccc1"
    molecule = parse_smiles(f"[P@]1({aryl})OC[C@]2(CO1)CO[P@](OC2){aryl}", POLICY)
    assert isinstance(molecule, Molecule), molecule
    with process_seconds(1.0):
        graph = featurize(molecule)
    found = labels(graph.atom_codes, ATOM_FEATURES, "cip")
    assert {found[i] for i, a in enumerate(molecule.mol.GetAtoms()) if a.GetChiralTag()} == {
        "other"
    }


def test_featurize_leaves_the_molecule_as_it_is():
    molecule = parse_smiles("C[C@H](F)/C=C/Cl", POLICY)

    def properties():
        return [
            {
                name: value
                for name, value in item.GetPropsAsDict(True, True).items()
                if name != "__computedProps"
            }
            for item in (*molecule.mol.GetAtoms(), *molecule.mol.GetBonds())
        ]

    before = properties()
    first, second = featurize(molecule), featurize(molecule)
    assert properties() == before
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("text", ["C" * 1000, "C[C@H](O)" * 200, "C1CC2CC1CC2" * 90])
def test_large_molecules_do_not_cost_seconds(text, process_seconds):
    with process_seconds(2.0):
        featurize(parse_smiles(text, POLICY))


# Among usual molecules some whose binary form is not understood, and some with stereo.
MIXED = ("CCO", "C~C", "[Na+].[Cl-]", "N[C@@H](C)C(=O)O", "C" * 300, "c1ccc2[nH]ccc2c1", "C")
MIXED += ("F/C=C\\F", "C~C1CC1", "C[C@H](O)[C@H](O)[C@@H](C)O", "C1CC2(CC1)OCCO2", "[H][H]")


def molecules_of(texts):
    return [parse_smiles(text, POLICY, row) for row, text in enumerate(texts)]


def assert_same(left, right):
    for name in ("atom_codes", "bond_atoms", "bond_codes", "atom_ptr", "bond_ptr"):
        a, b = getattr(left, name), getattr(right, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("at_once", [1, 4, 512])
def test_a_molecule_does_not_depend_on_its_neighbours(monkeypatch, at_once):
    monkeypatch.setattr(graph, "MOLECULES_AT_ONCE", at_once)
    molecules = molecules_of(MIXED)
    alone = PackedGraphs.pack([featurize(m) for m in molecules])
    assert_same(featurize_many(molecules), alone)
    backwards = PackedGraphs.pack([featurize(m) for m in molecules[::-1]])
    assert_same(featurize_many(molecules[::-1]), backwards)


def test_reading_and_asking_give_the_same_codes(monkeypatch):
    with SAMPLE.open(newline="") as file:
        texts = [row["smiles"] for row in csv.DictReader(file)][::25]
    molecules = molecules_of([*MIXED, *texts])
    read = featurize_many(molecules)
    monkeypatch.setattr(binary, "_HEADER", b"a version to come")
    assert_same(featurize_many(molecules), read)


def test_no_molecules_give_empty_arrays():
    assert_same(featurize_many([]), PackedGraphs.pack([]))

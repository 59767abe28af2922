"""Descriptors against RDKit, and their bounds of time and range."""

import math
import warnings

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors

from molscore.chem.descriptors import (
    DESCRIPTOR_NAMES,
    MAX_DENSE_ATOMS,
    compute_descriptors,
)
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.chem.topology import information_content
from molscore.errors import ConfigError

POLICY = ChemPolicy()
CHARGES = [n for n in DESCRIPTOR_NAMES if n.endswith("PartialCharge")]
BCUT = [n for n in DESCRIPTOR_NAMES if n.startswith("BCUT2D_")]
PEPTIDE = "N[C@@H](C)C(=O)"
SIDE_CHAINS = ["C", "CO", "Cc1ccccc1", "CC(C)C", "CCCCN", "CC(=O)O", "Cc1c[nH]c2ccccc12", "CCSC"]


def molecules(*texts):
    return [parse_smiles(text, POLICY) for text in texts]


def protein(n_residues):
    return (
        "".join(f"N[C@@H]({SIDE_CHAINS[i % len(SIDE_CHAINS)]})C(=O)" for i in range(n_residues))
        + "O"
    )


def test_names_are_those_of_rdkit():
    assert len(DESCRIPTOR_NAMES) == 217
    assert list(DESCRIPTOR_NAMES) == [name for name, _ in Descriptors.descList]


def test_values_equal_rdkit():
    texts = [
        "CCO",
        "CC(=O)Oc1ccccc1C(=O)O",
        "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
        "C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O",
        "CC(=O)[O-].[Na+]",
        "OS(=O)(=O)c1ccccc1",
        "CB(O)O",
        "C[C@H](N)C(=O)N[C@@H](Cc1ccccc1)C(=O)O",
        "FC(F)(F)c1ccc(Cl)cc1/C=C/C#N",
        "C" * 40,
    ]
    found = compute_descriptors(molecules(*texts))
    assert found.dtype == np.float64
    assert found.shape == (len(texts), 217)
    for row, text in zip(found, texts, strict=True):
        mol = Chem.MolFromSmiles(text)
        with rdBase.BlockLogs():
            expected = [function(mol) for _, function in Descriptors.descList]
        np.testing.assert_allclose(row, expected, rtol=1e-7, atol=1e-9, err_msg=text)


def test_values_do_not_depend_on_how_the_smiles_is_written():
    for text in (PEPTIDE * 6 + "O", "C[C@H]1CC[C@@H](C)CC1", "c1ccc2c(c1)[nH]c1ccccc12"):
        mol = Chem.MolFromSmiles(text)
        written = [
            Chem.MolToSmiles(mol, allHsExplicit=True, canonical=False),
            Chem.MolToSmiles(Chem.AddHs(mol), rootedAtAtom=3, canonical=False),
            Chem.MolToSmiles(mol, kekuleSmiles=True, rootedAtAtom=2),
        ]
        values = compute_descriptors(molecules(text, *written))
        for row in values[1:]:
            np.testing.assert_array_equal(row, values[0])


@pytest.mark.parametrize(
    "text",
    [
        "C[NH+]1C=NC=C1.F[P-](F)(F)(F)(F)F",
        "CCC[Sn](CCC)(CCC)c1ccncc1",
        "[Sr+2].[O-][Ti]([O-])=O",
    ],
)
def test_missing_partial_charges_are_all_missing(text):
    (row,) = compute_descriptors(molecules(text))
    missing = {name for name, value in zip(DESCRIPTOR_NAMES, row, strict=True) if np.isnan(value)}
    assert missing == {*CHARGES, *BCUT}


@pytest.mark.parametrize("text", ["C", "[Na+]", "[H+]", "[H][H]", "c1ccccn1->[Fe]", "C~C", "[U]"])
def test_the_smallest_and_strangest_give_a_row(text, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (row,) = compute_descriptors(molecules(text))
    assert np.isfinite(row).sum() > 180
    assert not np.isinf(row).any()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        PEPTIDE * 25 + "O",
        "C" * 150,
        "C" * 170,
        "C" * MAX_DENSE_ATOMS,
        "C" * 500,
        "C" * 1000,
        protein(25),
        protein(110),
        "FC(F)(F)" + "C(F)(F)" * 330 + "F",
        ".".join(["[Na+].[Cl-]"] * 300),
        "C1CC2CC1CC2" * 40,
        "C12C3C4C1C5C2C3C45" * 10,
    ],
)
def test_no_molecule_costs_seconds(text, process_seconds):
    (molecule,) = molecules(text)
    with process_seconds(3.0):
        (row,) = compute_descriptors([molecule])
    assert not np.isinf(row.astype(np.float32)).any()
    assert np.isfinite(row).sum() >= 170


def test_descriptors_beyond_the_bound_are_missing():
    within, beyond = compute_descriptors(molecules("C" * MAX_DENSE_ATOMS, "C" * 300), ["BertzCT"])
    assert np.isfinite(within[0])
    assert np.isnan(beyond[0])


def test_information_content_is_exact():
    for text in ("C" * 30, "c1ccccc1" * 6, "CC(C)(C)C1CC1CC=O"):
        adjacency = Chem.GetAdjacencyMatrix(Chem.MolFromSmiles(text))
        sizes = [abs(c) for c in characteristic_polynomial(adjacency)]
        total = sum(sizes)
        average = -sum(c / total * math.log2(c / total) for c in sizes if c)
        found = information_content(adjacency.astype(float))
        np.testing.assert_allclose(found, (average, total * average), rtol=1e-10)


def characteristic_polynomial(adjacency):
    """Faddeev-LeVerrier in whole numbers of any length."""
    a = adjacency.astype(object)
    power, coefficients = a.copy(), [1]
    for k in range(1, len(a) + 1):
        c = -int(np.trace(power)) // k
        coefficients.append(c)
        power = a.dot(power + c * np.eye(len(a), dtype=object))
    return coefficients


def test_information_content_where_rdkit_has_lost_its_digits():
    # Matchings of a path are Fibonacci numbers, so sum |c| of n atoms is F(n + 1).
    fibonacci = [1, 1]
    while len(fibonacci) < 171:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    adjacency = Chem.GetAdjacencyMatrix(Chem.MolFromSmiles("C" * 170)).astype(float)
    average, total = information_content(adjacency)
    np.testing.assert_allclose(total / average, float(fibonacci[170]), rtol=1e-10)


def test_chosen_names_come_in_their_order():
    texts = molecules("CCO", "c1ccccc1")
    names = ["TPSA", "MolWt", "MaxPartialCharge"]
    columns = [DESCRIPTOR_NAMES.index(name) for name in names]
    chosen = compute_descriptors(texts, names)
    np.testing.assert_array_equal(chosen, compute_descriptors(texts)[:, columns])
    assert compute_descriptors([]).shape == (0, 217)


def test_an_unknown_name_is_a_clear_error():
    with pytest.raises(ConfigError, match=r"'LogD' is not known to RDKit 20\d\d"):
        compute_descriptors(molecules("C"), ["LogD"])

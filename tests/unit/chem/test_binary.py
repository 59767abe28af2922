"""Skeletons read from RDKit's binary form against the same asked atom by atom."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from molscore.chem import binary
from molscore.chem.binary import read_binary
from molscore.chem.parse import Molecule, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.chem.skeleton import ask
from tests.molecules import VARIED, molecule

ROOT = Path(__file__).resolve().parents[3]
UNUSUAL = (
    "[Fe]$[Fe]",
    "c1ccccn1->[Fe]",
    "[O-][Cl+3]([O-])([O-])[O-]",
    "[O-2].[Th+4]",
    "[H][H]",
    "[CH3]",
    "[CH2]",
    "C/C=C/C=C\\C",
    "CC=C=CC",
    "C[C@H](O)[C@H](O)[C@@H](C)O",
    "C[S@](=O)c1ccccc1",
    "N[Pt@SP1](F)(Cl)Br",
    "C12C3C4C1C5C2C3C45",
    "C1#CCCCCCC1",
    "CC(C)(C)[N@+]1(C)CC[C@@H]1C",
    "[nH]1cccc1-c1ccc[nH]1",
    "C" * 255,
    "C1" + "C" * 200 + "1",
)
# Mols whose binary form holds more than is read; parsing gives the first two alone.
MORE = (
    Chem.MolFromSmiles("C~C"),
    Chem.MolFromSmiles("C" * 256),
    Chem.MolFromSmiles("[13CH4]"),
    Chem.MolFromSmiles("[CH4:1]"),
    Chem.MolFromSmiles("C[C@H](F)Cl |o1:1|"),
    Chem.MolFromSequence("AG"),
)


def mols_of(texts):
    parsed = [parse_smiles(text, ChemPolicy()) for text in texts]
    return [p.mol for p in parsed if isinstance(p, Molecule)]


def assert_reads_as_asked(mols):
    """Read all at once; returns the indices of those that are not understood."""
    found, unread = read_binary(mols)
    asked = [ask(mol) for i, mol in enumerate(mols) if i not in unread]
    for name in ("n_rings", "atom_ptr", "bond_ptr"):
        counts = getattr(found, name)
        if name != "n_rings":
            assert counts[0] == 0
            counts = np.diff(counts)
        assert not counts[unread].any()
        expected = [n[-1] for n in (getattr(skeleton, name) for skeleton in asked)]
        assert np.delete(counts, unread).tolist() == expected
    for name in found._fields[3:]:
        values = getattr(found, name)
        expected = [getattr(skeleton, name) for skeleton in asked]
        assert {e.dtype for e in expected} <= {values.dtype}, name
        np.testing.assert_array_equal(values, np.concatenate([values[:0], *expected]), err_msg=name)
    return unread


@pytest.mark.parametrize("text", [*VARIED, *UNUSUAL])
def test_one_molecule(text):
    assert assert_reads_as_asked([molecule(text).mol]) == []


def test_sample_data():
    with (ROOT / "sample_data" / "aqsoldb.csv").open(newline="") as file:
        texts = [row["smiles"] for row in csv.DictReader(file)][::10]
    assert assert_reads_as_asked(mols_of(texts)) == []


def test_druglike_molecules(shared_data):
    path = shared_data / "druglike_100k.smi.gz"
    if not path.is_file():
        pytest.skip(f"no drug-like molecules at {path}")
    with gzip.open(path, "rt") as file:
        texts = [line.split()[0] for line in file][::100]
    assert assert_reads_as_asked(mols_of(texts)) == []


def test_what_is_not_understood_is_said_and_spoils_no_neighbour():
    usual = mols_of(VARIED)
    mixed = [mol for pair in zip(usual, MORE, strict=False) for mol in pair]
    assert len(mixed) == 2 * len(MORE)
    assert assert_reads_as_asked(mixed) == list(range(1, len(mixed), 2))
    assert assert_reads_as_asked(list(MORE)) == list(range(len(MORE)))


class Written:
    """Stands for a Mol with a binary form of our making."""

    def __init__(self, form):
        self.form = form

    def ToBinary(self, what):
        return self.form


@pytest.mark.parametrize("text", ["C", "c1ccc2[nH]ccc2c1", "F/C=C/[C@H](N)C.[Na+]"])
def test_a_form_cut_short_or_longer_is_not_understood(text):
    form = molecule(text).mol.ToBinary(binary._WHAT)
    assert read_binary([Written(form)])[1] == []
    odd = [*(form[:n] for n in range(len(form))), form + b"\x16", form + form]
    assert read_binary([Written(f) for f in odd])[1] == list(range(len(odd)))


def test_every_byte_that_says_what_follows_is_checked():
    # A changed byte gives another form of equal make, such as another element, or is noticed;
    # nothing is read from outside the form.
    form = molecule("F/C=C/[C@H](N)c1cc[nH]c1").mol.ToBinary(binary._WHAT)
    changed = [
        Written(form[:place] + bytes([value]) + form[place + 1 :])
        for place in range(len(form))
        for value in range(256)
    ]
    assert len(form) * 100 < len(read_binary(changed)[1]) < len(changed)


def test_another_version_is_not_understood(monkeypatch):
    monkeypatch.setattr(binary, "_HEADER", b"another")
    assert read_binary(mols_of(VARIED))[1] == list(range(len(VARIED)))

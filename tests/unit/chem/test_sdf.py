"""Single SD records, with RDKit's own writer as the source."""

import pytest
from rdkit import Chem

from molscore.chem.sdf import property_names, read_sdf_block


def block(smiles, *properties):
    mol_block = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)).rstrip("\n")
    return "\n".join(["x", *mol_block.split("\n")[1:], *properties])


@pytest.mark.parametrize(
    "smiles",
    ["C", "c1ccccc1O", "C[C@H](N)C(=O)O", "F/C=C/F", "[Na+].[Cl-]", "[13CH4]", "[2H]O[2H]", "*C"],
)
def test_a_mol_block_gives_the_smiles_it_was_written_from(smiles):
    record = read_sdf_block(block(smiles))
    assert record.smiles == Chem.CanonSmiles(smiles)
    assert (record.name, record.properties, record.problem) == ("x", {}, None)


def test_properties_in_order_and_the_first_of_a_name():
    text = block(
        "C", "> 25 <a b> (7)", "1", "2", "", ">  <empty>", "", "> <a b>", "9", "", "> <z>", "3"
    )
    assert property_names(text) == ["a b", "empty", "z"]
    assert read_sdf_block(text).properties == {"a b": "1\n2", "empty": "", "z": "3"}


def test_an_empty_block_is_an_empty_molecule_and_junk_is_a_problem(capfd):
    assert read_sdf_block(block("")).smiles == ""
    assert read_sdf_block(block("")).problem is None
    for junk in ("", "a\nb\nc", "a\nb\nc\n  x  y V2000\n"):
        record = read_sdf_block(junk)
        assert record.smiles == ""
        assert record.problem.startswith("the mol block cannot be read: ")
        assert "\n" not in record.problem
    assert capfd.readouterr().err == ""


def test_a_second_mol_block_is_not_dropped_in_silence():
    record = read_sdf_block(block("C") + "\n" + block("CC", "> <a>", "1"))
    assert (record.smiles, record.properties) == ("", {"a": "1"})
    assert "more than one mol block" in record.problem


def test_a_field_may_have_a_number_instead_of_a_name():
    assert read_sdf_block(block("C", "> DT12", "4", "", "> 5", "x")).properties == {"DT12": "4"}


def test_words_of_a_violated_condition_are_found_in_their_frame():
    lines = block("CC").replace(" C  ", " Xx ").split("\n")
    assert read_sdf_block("\n".join(lines)).problem.endswith("Element 'Xx' not found")


def test_a_block_cut_short():
    lines = block("CC").split("\n")
    assert read_sdf_block("\n".join(lines[:4])).problem.endswith("cut short, or none")

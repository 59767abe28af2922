"""What a molecule has that the training set has not."""

from molscore.chem.atom_kinds import KnownAtoms, atom_kinds
from molscore.chem.graph import featurize_many
from tests.molecules import molecule


def strangers(known: list[str], asked: list[str]) -> dict[int, str]:
    molecules = [molecule(s) for s in asked]
    atoms = KnownAtoms(atom_kinds(molecule(s) for s in known))
    return atoms.strangers(molecules, featurize_many(molecules))


def test_elements_and_charges_are_named() -> None:
    assert strangers(
        ["CCO", "CC(=O)[O-].[Na+]"],
        ["CCO", "CCN", "[Na]", "C[N+](C)(C)C", "[U]", "[He]", "OC[C-]", "[O-]CC"],
    ) == {
        1: "element N not in the training set",
        2: "charge +0 on Na not in the training set",
        3: "element N not in the training set",
        4: "element U not in the training set",
        5: "element He not in the training set",
        6: "charge -1 on C not in the training set",
    }


def test_elements_without_a_code_of_their_own_are_told_apart() -> None:
    assert strangers(["[U]"], ["[U]", "[He]"]) == {1: "element He not in the training set"}
    assert strangers(["[Ti+4]"], ["[Ti+4]", "[Ti+5]"]) == {
        1: "charge +5 on Ti not in the training set"
    }


def test_several_are_listed() -> None:
    (said,) = strangers(["C"], ["C[Si](C)(C)Cl"]).values()
    assert said == "element Si, element Cl not in the training set"

"""Which texts become molecules, which do not, and what the reason says."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem, rdBase

from molscore.chem.molecule import Molecule, ParseFailure
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import MAX_ATOMS, MAX_RINGS, MAX_SMILES_LENGTH, ChemPolicy

POLICY = ChemPolicy()


def canonical(text, policy=POLICY):
    molecule = parse_smiles(text, policy)
    assert isinstance(molecule, Molecule), molecule
    return Chem.MolToSmiles(molecule.mol)


def failure(text, policy=POLICY):
    result = parse_smiles(text, policy, row=7)
    assert isinstance(result, ParseFailure), text
    assert (result.row, result.smiles) == (7, text)
    assert result.reason and "\n" not in result.reason
    return result


@pytest.mark.parametrize("text", ["", "   ", "\t", "nan", "NaN", "NA", "None", "null", "-", "."])
def test_nothing_is_empty(text):
    assert failure(text).status == "empty"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c1cccn1", "kekulize"),
        ("c1cncn1", "kekulize"),
        ("Cc1cc2nnnc2cc1", "kekulize"),
        ("CC1=CC=C[NH+2]([O-])C1", "valence"),
        ("CCN1(=C(C=CC=C1)C)I", "valence"),
        ("N=N[Br]c2ccccc2)C", "parentheses"),
        ("C1CC", "unclosed ring"),
        ("CC(", "syntax error near position 3"),
        ("CCO>>CC=O", "reaction"),
        ("CCO.CN>>CCN", "reaction"),
        ("CCO>[Pd]>CC=O", "reaction"),
        ("InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3", "looks like InChI"),
        ("LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "looks like an InChIKey"),
        ('"CCO"', "quotes"),
        ("'CCN'", "quotes"),
        ("[R1]CC", "[R1] is an R-group placeholder"),
        ("[(R6)n]C", "[(R6)n] is an R-group placeholder"),
        ("[alkyl]O", "[alkyl] is not an atom"),
        ("[Xx]", "[Xx] is not an atom"),
        ("[#119]", "Atomic number not found"),
        ("C[/x]", "[/x] is not an atom"),
        ("CCO ethanol", "text after the SMILES: 'ethanol'"),
        ("CCO\x00", "'\\x00' at position 4"),
        ("CC\N{EN DASH}O", "at position 3"),
        ("CC\ud800", "at position 3"),
    ],
)
def test_not_a_molecule(text, words):
    result = failure(text)
    assert result.status == "invalid_smiles"
    assert words in result.reason


@pytest.mark.parametrize("text", ["*", "*CC", "C[*:1]", "[1*]c1ccccc1", "[#0]C", "C* |$;R1$|"])
def test_dummy_atoms_are_unsupported(text):
    result = failure(text)
    assert result.status == "unsupported"
    assert "dummy atom" in result.reason


def test_without_brackets_there_are_no_hydrogens_maps_or_isotopes():
    # What parsing relies on, for all pairs of characters.
    options = Chem.SmilesParserParams()
    options.sanitize = False
    options.removeHs = False
    characters = [chr(c) for c in range(ord("!"), ord("~") + 1) if chr(c) not in "[]"]
    seen = set()
    with rdBase.BlockLogs():
        for text in map("".join, product(characters, repeat=2)):
            mol = Chem.MolFromSmiles(text, options)
            for atom in mol.GetAtoms() if mol is not None else ():
                assert not atom.GetAtomMapNum() + atom.GetIsotope(), text
                assert atom.GetAtomicNum() or "*" in text
                seen.add(atom.GetSymbol())
    assert seen == {"*", "B", "C", "N", "O", "F", "P", "S", "Cl", "Br", "I"}


def test_size_is_bounded():
    assert parse_smiles("C" * MAX_ATOMS, POLICY).mol.GetNumAtoms() == MAX_ATOMS
    too_many = failure("C" * (MAX_ATOMS + 1))
    assert (too_many.status, str(MAX_ATOMS) in too_many.reason) == ("unsupported", True)
    too_many_rings = failure("C1CC1" * (MAX_RINGS + 1))
    assert (too_many_rings.status, str(MAX_RINGS) in too_many_rings.reason) == (
        "unsupported",
        True,
    )
    assert isinstance(parse_smiles("C1CC1" * MAX_RINGS, POLICY), Molecule)
    too_long = failure("C(" * MAX_SMILES_LENGTH)
    assert (too_long.status, "characters" in too_long.reason) == ("unsupported", True)
    written_out = Chem.MolToSmiles(Chem.AddHs(Chem.MolFromSmiles("C" * MAX_ATOMS)))
    assert isinstance(parse_smiles(written_out, POLICY), Molecule)


def test_blanks_and_cxsmiles_extensions_are_dropped():
    assert canonical(" OCC\r\n") == canonical("OCC |r|") == canonical("OCC |(1,2,;3,4,;5,6,)| x")


@pytest.mark.parametrize(
    ("labelled", "plain"),
    [
        ("CC([2H])O", "CCO"),
        ("[13CH4]", "C"),
        ("[2H]C([2H])([2H])O", "CO"),
        ("[2H]O[2H]", "O"),
        ("C[C@]([2H])(O)[H]", "CCO"),
        ("C[C@@H]([13CH3])O", "CC(C)O"),
        ("C/C([13CH3])=C/C", "CC=C(C)C"),
        ("[2H]/C([H])=C/C", "C=CC"),
        ("[CH3:1][C@H:2](F)Cl", "C[C@H](F)Cl"),
        ("[OH2:3]", "O"),
    ],
)
def test_isotopes_and_atom_maps_are_ignored(labelled, plain):
    assert canonical(labelled) == canonical(plain)


@pytest.mark.parametrize(
    ("explicit", "folded"),
    [
        ("[H]O[H]", "O"),
        ("[H]C([H])([H])[H]", "C"),
        ("[H][C@](F)(Cl)Br", "[C@H](Br)(F)Cl"),
        ("[H]/C(Cl)=C(\\[H])F", "Cl/C=C\\F"),
        ("[H]/N=C/C", "N=CC"),
        ("[H][Na]", "[NaH]"),
        ("[H][H]", "[H][H]"),
        ("[H+].[Cl-]", "[H+].[Cl-]"),
    ],
)
def test_hydrogens_are_folded(explicit, folded):
    assert canonical(explicit) == canonical(folded)


def test_ring_stereo_survives_explicit_hydrogens():
    # RDKit's RemoveHs turns this Z bond into E: a bond direction at a ring closure.
    text = "[H]/C1=C(\\[H])CCCCCCCCCC1"
    assert canonical(text) == canonical("C1=C\\CCCCCCCCCC/1")


@pytest.mark.parametrize(
    "text",
    [
        "c1ccccn1->[Fe]",
        "O->[Mg+2]<-O",
        "[Cl-]->[Ga+3](<-[Cl-])<-[Cl-]",
        "N[Pt@SP1](N)(Cl)Cl",
        "N[Pt](N)(Cl)Cl",
        "FS(F)(F)(F)(F)F",
        "[U]",
        "[Na+]",
        "c1cc[se]c1",
        "c1ccc[nH]1",
        "C[n+]1ccccc1",
    ],
)
def test_unusual_molecules_are_read(text):
    assert isinstance(parse_smiles(text, POLICY), Molecule)


def test_only_the_log_of_the_call_is_quiet(capfd):
    failure("c1cccn1")
    failure("[H")
    parse_smiles("[H+]", POLICY)  # RDKit warns about a hydrogen without neighbours
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1")
    assert "unclosed ring" in capfd.readouterr().err


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.one_of(
        st.text(max_size=30),
        st.text(alphabet="CNOclnos[]()=#@/\\+-1234%.:>*HF $~{}'\"|", max_size=30),
    )
)
def test_no_text_raises(text):
    result = parse_smiles(text, POLICY)
    assert isinstance(result, Molecule | ParseFailure)
    assert result.smiles == text
    if isinstance(result, Molecule):
        assert result.mol.GetNumAtoms() > 0

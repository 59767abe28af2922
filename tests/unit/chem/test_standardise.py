"""The choices of a policy: salts, charges, stereo, tautomers."""

import pytest
from rdkit import Chem

from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.errors import ConfigError


def canonical(text, **choices):
    return Chem.MolToSmiles(parse_smiles(text, ChemPolicy(**choices)).mol)


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)[O-]"),
        ("[K+].[I-]", "[I-]"),
        ("O.O.O", "O"),
        ("CCO", "CCO"),
        ("C.OS(=O)(=O)O", "C"),  # carbon comes before size
        ("CCO.CCN", "CCO"),  # equal size: mass
        ("CC(C)O.CCCO", "CC(C)O"),  # equal mass: canonical SMILES
        ("C[NH+]1C=NC=C1.F[P-](F)(F)(F)(F)F", "C[NH+]1C=CN=C1"),
    ],
)
def test_parent_does_not_depend_on_the_order_of_fragments(text, parent):
    backwards = ".".join(reversed(text.split(".")))
    assert canonical(text, salts="parent") == canonical(backwards, salts="parent")
    assert canonical(text, salts="parent") == canonical(parent)
    assert canonical(text, salts="whole") == canonical(backwards, salts="whole")


def test_whole_keeps_every_fragment():
    assert parse_smiles("O.O.O", ChemPolicy()).mol.GetNumAtoms() == 3


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("CC(=O)[O-]", "CC(=O)O"),
        ("C[NH3+]", "CN"),
        ("[NH3+]CC(=O)[O-]", "NCC(=O)O"),
        ("C[N+](C)(C)C", "C[N+](C)(C)C"),
        ("C[N+](=O)[O-]", "C[N+](=O)[O-]"),
        ("F[P-](F)(F)(F)(F)F", "F[P-](F)(F)(F)(F)F"),
    ],
)
def test_neutralize(text, neutral):
    assert canonical(text, neutralize=True) == canonical(neutral)
    assert canonical(text) == Chem.CanonSmiles(text)


@pytest.mark.parametrize(
    ("text", "flat"),
    [("C[C@H](F)Cl", "CC(F)Cl"), ("F/C=C/F", "FC=CF"), ("C[S@](=O)CC", "CCS(C)=O")],
)
def test_stereo_is_kept_or_dropped(text, flat):
    assert canonical(text, stereo="drop") == flat
    assert canonical(text) != flat


def test_stereo_that_only_an_isotope_makes_is_not_stereo():
    assert canonical("C[C@H]([13CH3])O") == "CC(C)O"


def test_canonical_tautomers_unite_what_as_written_keeps_apart():
    forms = "Oc1ccccn1", "O=c1cccc[nH]1"
    assert len({canonical(f, tautomers="canonical") for f in forms}) == 1
    assert len({canonical(f) for f in forms}) == 2


def test_steps_combine():
    text = "[Na+].C[C@H](N)C(=O)[O-]"
    combined = canonical(text, salts="parent", neutralize=True, stereo="drop")
    assert combined == Chem.CanonSmiles("CC(N)C(=O)O")


def test_a_policy_round_trips_and_refuses_unknown_choices():
    policy = ChemPolicy(salts="parent", neutralize=True)
    assert ChemPolicy.from_dict(policy.to_dict()) == policy
    with pytest.raises(ConfigError, match="salts"):
        ChemPolicy.from_dict({"salts": "largest"})

"""The target column, when the user does not say, and when they do."""

import pytest

from molscore.data.target_columns import choose_targets
from molscore.errors import ConfigError, InputError

N = 30
FLOATS = [f"{i * 37 % 101 / 7 - 5:.3f}" for i in range(N)]
INTEGERS = [str(i * 13 % 7) for i in range(N)]
CLASSES = [str(i * 5 % 3 % 2) for i in range(N)]
INDEX = [str(i + 1) for i in range(N)]
WORDS = [f"compound {i}" for i in range(N)]
IDS = [f"CHEMBL{i * 31}" for i in range(N)]
SMILES = ["C" * (i + 1) for i in range(N)]


def choose(table, requested=None):
    columns = list(table)
    smiles = next(i for i, name in enumerate(columns) if table[name] is SMILES)
    return [columns[i] for i in choose_targets(columns, list(table.values()), smiles, requested)]


ESOL = {
    "Compound ID": WORDS,
    "ESOL predicted log solubility in mols per litre": FLOATS,
    "Minimum Degree": INTEGERS,
    "Molecular Weight": FLOATS,
    "Number of H-Bond Donors ": INTEGERS,
    "Number of Rings": INTEGERS,
    "Number of Rotatable Bonds": INTEGERS,
    "Polar Surface Area": FLOATS,
    "measured log solubility in mols per litre": FLOATS,
    "smiles": SMILES,
}
AQSOL = {
    "ID": IDS,
    "Name": WORDS,
    "SMILES": SMILES,
    "InChIKey": WORDS,
    "Solubility": FLOATS,
    "SD": FLOATS,
    "Occurrences": INTEGERS,
    "Group": [f"G{i % 5}" for i in range(N)],
}
AQSOL_FULL = AQSOL | {
    "MolWt": FLOATS,
    "MolLogP": FLOATS,
    "MolMR": FLOATS,
    "HeavyAtomCount": INTEGERS,
    "NumHAcceptors": INTEGERS,
    "NumHDonors": INTEGERS,
    "NumHeteroatoms": INTEGERS,
    "NumRotatableBonds": INTEGERS,
    "NumValenceElectrons": INTEGERS,
    "NumAromaticRings": INTEGERS,
    "RingCount": INTEGERS,
    "TPSA": FLOATS,
    "LabuteASA": FLOATS,
    "BalabanJ": FLOATS,
    "BertzCT": FLOATS,
}


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (ESOL, "measured log solubility in mols per litre"),
        (AQSOL, "Solubility"),
        (AQSOL_FULL, "Solubility"),
        ({"smiles": SMILES, "logS": FLOATS}, "logS"),
        ({"smiles": SMILES, "whatever it is": FLOATS, "name": WORDS}, "whatever it is"),
        ({"CMPD_CHEMBLID": IDS, "exp": FLOATS, "smiles": SMILES}, "exp"),
        ({"iupac": WORDS, "smiles": SMILES, "expt": FLOATS, "calc": FLOATS}, "expt"),
        ({"num": INDEX, "name": WORDS, "p_np": CLASSES, "smiles": SMILES}, "p_np"),
        (
            {"smiles": SMILES, "activity": ["CI", "CM", "CA"] * 10, "HIV_active": CLASSES},
            "HIV_active",
        ),
        ({"Drug_ID": IDS, "Drug": SMILES, "Y": FLOATS}, "Y"),
        ({"": INDEX, "smiles": SMILES, "potency": FLOATS}, "potency"),
        ({"row count": INDEX, "smiles": SMILES, "potency": FLOATS, "year": INTEGERS}, "potency"),
        ({"key": INDEX, "smiles": SMILES, "active": ["yes", "no"] * 15}, "active"),
        ({"smiles": SMILES, "IC50 (nM)": ["12", ">10000", "<5"] * 10, "MW": FLOATS}, "IC50 (nM)"),
        ({"smiles": SMILES, "logS": FLOATS, "pred_logS": FLOATS, "pred_logS_sd": FLOATS}, "logS"),
        ({"id": INDEX, "smiles": SMILES}, "id"),
        ({"smiles": SMILES, "logS": FLOATS, "fold": INTEGERS, "temperature": FLOATS}, "logS"),
        (
            {"smiles": SMILES, "number": INDEX, "experimental pKa": FLOATS, "pH": FLOATS},
            "experimental pKa",
        ),
    ],
)
def test_the_target_is_found(table, target):
    assert choose(table) == [target]


TOX21 = {f"NR-{name}": CLASSES for name in ("AR", "AhR", "ER")} | {"mol_id": IDS, "smiles": SMILES}


@pytest.mark.parametrize(
    ("table", "candidates"),
    [
        (TOX21, "'NR-AR', 'NR-AhR', 'NR-ER'"),
        (
            {"smiles": SMILES, "FDA_APPROVED": CLASSES, "CT_TOX": CLASSES},
            "'FDA_APPROVED', 'CT_TOX'",
        ),
        ({"smiles": SMILES, "logS": FLOATS, "logP": FLOATS, "MW": FLOATS}, "'logS', 'logP'"),
        ({"smiles": SMILES, "y ": FLOATS, "y": FLOATS}, "'y', 'y'"),
        ({"smiles": SMILES, "exp A": FLOATS, "exp B": FLOATS, "C": FLOATS}, "'exp A', 'exp B'"),
        ({"smiles": SMILES, "MW": FLOATS, "TPSA": FLOATS}, "'MW', 'TPSA'"),
    ],
)
def test_several_that_could_be_meant_are_listed_with_the_flag(table, candidates):
    with pytest.raises(
        ConfigError, match=f"could be the target: {candidates}; name one with --target"
    ) as caught:
        choose(table)
    assert caught.value.exit_code == 2


def test_no_column_of_values():
    with pytest.raises(InputError, match=r"no column holds numbers.*'smiles', 'name'"):
        choose({"smiles": SMILES, "name": WORDS})


def test_an_index_is_no_target_only_where_there_is_another():
    assert choose({"nth": INDEX, "smiles": SMILES, "potency": FLOATS}) == ["potency"]
    assert choose({"nth": INDEX, "smiles": SMILES}) == ["nth"]


# --- what the user names ------------------------------------------------------------------


def test_named_targets_in_the_order_named():
    table = {"a": FLOATS, "smiles": SMILES, "b ": INTEGERS}
    assert choose(table, ["b", "a"]) == ["b ", "a"]
    assert choose(table, ["B"]) == ["b "]


PADDED = {"smiles": SMILES, "y ": FLOATS, " y": FLOATS, "log S0 (mol/L)": FLOATS}


def test_a_name_that_two_columns_have_is_ambiguous():
    with pytest.raises(ConfigError, match=r"--target 'y' is ambiguous: columns 2, 3") as caught:
        choose(PADDED, ["y"])
    assert caught.value.exit_code == 2
    assert choose(PADDED, ["y "]) == ["y "]
    assert choose(PADDED, ["log S0 (mol/L)"]) == ["log S0 (mol/L)"]


@pytest.mark.parametrize(
    ("requested", "words"),
    [
        (["logs0"], r"'logs0' is not a column.* The columns are 'smiles', 'y ', ' y'"),
        (["smiles"], "is the SMILES column"),
        (["log S0 (mol/L)", "LOG S0 (mol/L)"], "names a column twice"),
    ],
)
def test_names_that_cannot_be_used(requested, words):
    with pytest.raises(ConfigError, match=words):
        choose(PADDED, requested)

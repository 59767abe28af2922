"""Labelled tables: real ones with no flag, gaps, refused values, classes, options."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from molscore.data.tables import TableOptions
from molscore.data.targets import Rejected, Target, read_labelled
from molscore.errors import ConfigError, InputError

GOOD = "".join(f"{'C' * (i + 5)},{i / 10},{i / 4}\n" for i in range(10))


@pytest.fixture
def labelled(tmp_path):
    def read(content, name="t.csv", options=TableOptions(), **settings):  # noqa: B008 - frozen
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_labelled(path, options, **settings)

    return read


# --- real tables, no flag -----------------------------------------------------------------


def test_esol_as_it_is(shared_data):
    table = read_labelled(shared_data / "esol.csv")
    frame = pd.read_csv(shared_data / "esol.csv")
    assert [target.name for target in table.targets] == [
        "measured log solubility in mols per litre"
    ]
    assert table.targets[0].kind == "regression"
    assert table.smiles == frame["smiles"].str.strip().tolist()
    np.testing.assert_array_equal(
        table.values[:, 0], frame["measured log solubility in mols per litre"]
    )
    assert table.rejected == []
    assert table.lines == list(range(2, 1130))
    content = (shared_data / "esol.csv").read_bytes()
    assert table.sha256 == hashlib.sha256(content).hexdigest()


def test_aqsoldb_as_it_is(shared_data):
    table = read_labelled(shared_data / "aqsoldb.csv")
    frame = pd.read_csv(shared_data / "aqsoldb.csv")
    assert [target.name for target in table.targets] == ["Solubility"]
    np.testing.assert_array_equal(table.values[:, 0], frame["Solubility"])
    assert table.extra["Name"] == frame["Name"].tolist()
    assert table.column("group") == frame["Group"].tolist()


# --- gaps and refused values --------------------------------------------------------------


def test_qualified_values_are_reported_and_left_out(labelled):
    table = labelled(
        "smiles,T1,T2\nC,>3,\nCC,>1,1\nCCC,1,<2\nCCCC,<0.1,1\nCCCCC,= 5,~2\n",
        targets=["T1", "T2"],
    )
    np.testing.assert_array_equal(
        table.values,
        [[np.nan, np.nan], [np.nan, 1], [1, np.nan], [np.nan, 1], [np.nan, np.nan]],
    )
    reason = "qualified value (the sign is not dropped)"
    assert table.rejected == [
        Rejected(0, 2, "T1", ">3", reason),
        Rejected(1, 3, "T1", ">1", reason),
        Rejected(2, 4, "T2", "<2", reason),
        Rejected(3, 5, "T1", "<0.1", reason),
        Rejected(4, 6, "T1", "= 5", reason),
        Rejected(4, 6, "T2", "~2", reason),
    ]
    assert table.labelled.tolist() == [False, True, True, True, False]


def test_gaps_are_gaps_and_all_else_is_reported(labelled):
    table = labelled(
        f"smiles,a,b\nC,1,\nCC,,2\nCCC,NaN,NA\nCCCC,inf,3\nCCCCC,-,4\n{GOOD}",
        targets=["a", "b"],
    )
    np.testing.assert_array_equal(
        table.values[:5], [[1, np.nan], [np.nan, 2], [np.nan] * 2, [np.nan, 3], [np.nan, 4]]
    )
    assert not table.labelled[2]
    assert [(r.line, r.column, r.text) for r in table.rejected] == [(5, "a", "inf"), (6, "a", "-")]
    assert len(table) == 15


def test_a_ragged_row_is_left_out_whole(labelled):
    table = labelled(
        'name,smiles,y\n"1,2-dichloroethane",ClCCCl,-1.1\n'
        "N,N-dimethylaniline,CN(C)c1ccccc1,-2\nethane,CC,1\n"
    )
    assert table.smiles == ["ClCCCl", "", "CC"]
    np.testing.assert_array_equal(table.values[:, 0], [-1.1, np.nan, 1])
    assert (table.rejected[0].row, table.rejected[0].line, table.rejected[0].column) == (1, 3, "")
    assert "ragged" in table.rejected[0].reason
    assert table.rejected[0].text == "N,N-dimethylaniline,CN(C)c1ccccc1,-2"
    assert table.malformed == {1}


def test_row_numbers_stay_those_of_the_file(labelled):
    table = labelled("smiles,y\nCCO,1\n\n,2\nbad[,3\nCC,4\n")
    assert table.smiles == ["CCO", "", "", "bad[", "CC"]
    assert table.lines == [2, 3, 4, 5, 6]


def test_a_target_without_a_value_is_refused_with_the_first_reason(labelled):
    with pytest.raises(InputError, match=r"no value of target 'y' can be used.*'<1' in line 2"):
        labelled("smiles,y\nC,<1\nCC,<2\n", targets=["y"])
    with pytest.raises(InputError, match=r"no value of target 'y' can be used for regression$"):
        labelled("smiles,y\nC,\nCC,NA\n", targets=["y"])
    with pytest.raises(InputError, match="a header and no record below"):
        labelled("smiles,y\n")
    with pytest.raises(InputError, match="no record can be used; the first, in line 2: ragged"):
        labelled("smiles,y\nCCO\nCC\n")


# --- decimal marks ------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_with_no_flag(labelled, separator):
    table = labelled(f"smiles{separator}logS\nCCO{separator}-1,1\nCCN{separator}0,925\n")
    np.testing.assert_array_equal(table.values[:, 0], [-1.1, 0.925])


def test_quoted_decimal_commas_between_commas(labelled):
    table = labelled('smiles,logS\nCCO,"-1,1"\nCCN,2\n')
    np.testing.assert_array_equal(table.values[:, 0], [-1.1, 2])


def test_thousands_separators_are_not_guessed(labelled):
    content = "smiles;y\nCCO;1,234\nCCN;2\n"
    table = labelled(content)
    assert np.isnan(table.values[0, 0])
    assert "--decimal" in table.rejected[0].reason
    table = labelled(content, options=TableOptions(decimal=","))
    np.testing.assert_array_equal(table.values[:, 0], [1.234, 2])
    table = labelled(content.replace(",", "."))
    np.testing.assert_array_equal(table.values[:, 0], [1.234, 2])


# --- classes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "classes", "values"),
    [
        (["0", "1", "1", ""], ("0", "1"), [0, 1, 1, np.nan]),
        (["Yes", "no", "NA", "yes"], ("no", "yes"), [1, 0, np.nan, 1]),
        (["active", "inactive", "active", "null"], ("inactive", "active"), [1, 0, 1, np.nan]),
        (["TRUE", "FALSE", "", "true"], ("false", "true"), [1, 0, np.nan, 1]),
    ],
)
def test_two_classes_are_a_classification(labelled, cells, classes, values):
    rows = "".join(f"{'C' * (i + 1)},{cell}\n" for i, cell in enumerate(cells))
    table = labelled(f"smiles,active\n{rows}")
    assert table.targets == (Target(name="active", kind="classification", classes=classes),)
    np.testing.assert_array_equal(table.values[:, 0], values)


@pytest.mark.parametrize(
    ("cells", "settings"),
    [
        (["1", "0", "inconclusive", "", "0"], {}),
        (["active", "inactive", "inconclusive", "", "inactive"], {"targets": ["y"]}),
        (["active", "inactive", "inconclusive", "", "inactive"], {"kind": "classification"}),
        (["soluble", "insoluble", "inconclusive", "", "INSOLUBLE"], {"kind": "classification"}),
    ],
)
def test_an_odd_word_among_classes_is_left_out_by_row(labelled, cells, settings):
    rows = "".join(f"{'C' * (i + 1)},{cell}\n" for i, cell in enumerate(cells))
    table = labelled(f"smiles,y\n{rows}", **settings)
    assert table.targets[0].kind == "classification"
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, np.nan, np.nan, 0])
    assert [(r.line, r.text) for r in table.rejected] == [(4, "inconclusive")]
    assert "not one of the classes" in table.rejected[0].reason


def test_a_word_and_its_negation_are_found_as_the_target(labelled):
    table = labelled("smiles,name,y\nC,a,soluble\nCC,b,insoluble\nCCC,c,soluble\n")
    assert table.targets[0].classes == ("insoluble", "soluble")
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, 1])


def test_two_words_without_an_order_are_refused_with_what_is_accepted(labelled):
    words = r"target 'y' cannot be used .*inactive/active.*'hit', 'miss'; write 0 and 1"
    with pytest.raises(InputError, match=words):
        labelled("smiles,y\nC,hit\nCC,miss\n", targets=["y"], kind="classification")


def rows_of(*cells):
    return "".join(f"{'C' * (i + 1)},{cell}\n" for i, cell in enumerate(cells))


def test_a_stray_number_among_zeros_and_ones_is_told(labelled):
    table = labelled("smiles,y\n" + rows_of(*[0, 1] * 10, 2))
    assert table.targets[0].kind == "regression"
    (note,) = [note for note in table.notes if "--task classification" in note]
    assert note.startswith("20 of 21 values of 'y' are 0 or 1")
    said = labelled("smiles,y\n" + rows_of(*[0, 1] * 10, 2), kind="regression").notes
    assert not any("--task classification" in note for note in said)
    counts = labelled("smiles,y\n" + rows_of(0, 1, 2, 1, 0, 3, 1)).notes
    assert not any("--task classification" in note for note in counts)


def test_a_column_of_two_words_and_a_few_others_is_found(labelled):
    table = labelled(
        "smiles,name,active\n"
        + "".join(
            f"{'C' * (i + 1)},name {i},{cell}\n"
            for i, cell in enumerate(["yes", "no"] * 10 + ["maybe"])
        )
    )
    assert table.targets[0].classes == ("no", "yes")
    assert [(r.line, r.text) for r in table.rejected] == [(22, "maybe")]
    with pytest.raises(InputError, match=r"no column holds numbers or two classes.*--target"):
        labelled("smiles,active\n" + rows_of("yes", "no", "maybe", "unclear", "yes", "no"))


def test_numbers_with_decimal_commas_are_no_classes(labelled):
    table = labelled("smiles;y\nC;0\nCC;1\nCCC;0,5\nCCCC;1,5\n")
    assert table.targets[0].kind == "regression"
    np.testing.assert_array_equal(table.values[:, 0], [0, 1, 0.5, 1.5])


def test_a_decimal_mark_that_is_given_is_not_asked_for(labelled):
    table = labelled('smiles,y\nC,"1,100"\nCC,2.5\n', options=TableOptions(decimal="."))
    assert "thousands separator" in table.rejected[0].reason
    assert "--decimal" not in table.rejected[0].reason


def test_the_kind_can_be_said(labelled):
    content = "smiles,y\nC,0\nCC,1\nCCC,1\n"
    assert labelled(content).targets[0].kind == "classification"
    assert labelled(content, kind="regression").targets[0].kind == "regression"
    table = labelled("smiles,y\nC,0\nCC,1\nCCC,2\n", kind="classification")
    assert table.targets[0].kind == "classification"
    assert [(r.line, r.text) for r in table.rejected] == [(4, "2")]


def test_kinds_may_differ_between_targets(labelled):
    table = labelled("smiles,a,b\nC,0,1.5\nCC,1,2\n", targets=["a", "b"], transform="log10")
    assert [target.kind for target in table.targets] == ["classification", "regression"]
    assert [target.transform for target in table.targets] == ["none", "log10"]


# --- settings -----------------------------------------------------------------------------


def test_unit_note_and_transform_reach_the_target(labelled):
    table = labelled(
        "smiles,sol\nC,10\nCC,0\nCCC,-1\nCCCC,1e-3\n",
        transform="log10",
        unit="mg/L",
        note="water, pH not controlled",
    )
    assert table.targets == (
        Target(name="sol", transform="log10", unit="mg/L", note="water, pH not controlled"),
    )
    np.testing.assert_array_equal(table.values[:, 0], [10, np.nan, np.nan, 1e-3])
    assert [(r.line, r.reason) for r in table.rejected] == [
        (3, "log10 is not defined for it"),
        (4, "log10 is not defined for it"),
    ]
    np.testing.assert_allclose(table.targets[0].forward(table.values[:, 0])[[0, 3]], [1, -3])


def test_a_transform_that_leaves_most_values_out_is_refused(labelled):
    content = "smiles,logS\nC,-1\nCC,-2.5\nCCC,0.5\nCCCC,\n"
    words = r"log10 is not defined for 2 of 3 values of 'logS', the first '-1' in line 2"
    with pytest.raises(InputError, match=words):
        labelled(content, transform="log10")


def test_a_transform_of_classes_is_refused(labelled):
    with pytest.raises(ConfigError, match=r"goes with numbers.*--task regression"):
        labelled("smiles,y\nC,0\nCC,1\n", transform="log10")


def test_the_targets_of_a_model_hold_as_they_are(labelled):
    mine = Target(name="y", transform="log10", unit="mM")
    table = labelled("smiles,x,y\nC,1,0\nCC,2,1\n", targets=[mine])
    assert table.targets == (mine,)
    np.testing.assert_array_equal(table.values[:, 0], [np.nan, 1])


def test_the_choice_is_told(labelled):
    table = labelled("smiles,logS\nC,1\nCC,2\n")
    assert table.notes == ("the target is 'logS' (regression); --target names another",)
    table = labelled("smiles,logS\nC,1\nCC,2\n", targets=["logS"])
    assert table.notes == ("the target is 'logS' (regression)",)
    table = labelled("smiles,active\nC,1\nCC,0\n")
    assert table.notes == (
        "the target is 'active' (classification, 1 = positive); --target names another",
    )
    table = labelled("smiles,a,b\nC,toxic,1\nCC,nontoxic,2\n", targets=["b", "a"])
    assert table.notes == (
        "the target is 'b' (regression)",
        "the target is 'a' (classification, toxic = positive)",
    )
    assert labelled("smiles,y\nC,1\nCC,2\n", targets=[Target(name="y")]).notes == ()


def test_repeated_column_names(labelled):
    content = "smiles,y ,y ,log S0 (mol/L)\nCCO,1,2,3\nCC,4,5,6\n"
    with pytest.raises(ConfigError, match="--target 'y' is ambiguous"):
        labelled(content, targets=["y"])
    table = labelled(content, targets=["log S0 (mol/L)"])
    assert list(table.extra) == ["smiles", "y ", "y _2", "log S0 (mol/L)"]
    np.testing.assert_array_equal(table.values[:, 0], [3, 6])


def test_a_data_frame_is_a_table():
    frame = pd.DataFrame(
        {"Smiles": ["CCO", None, "CC"], "logS": [0.1, 2, float("nan")], "n": pd.array([1, None, 3])}
    )
    table = read_labelled(frame)
    assert table.name == "data frame"
    assert table.smiles == ["CCO", "", "CC"]
    np.testing.assert_array_equal(table.values[:, 0], [0.1, 2, np.nan])
    assert table.extra["n"] == ["1", "", "3"]
    assert table.sha256 is None


def test_a_data_frame_of_booleans_and_numbers_with_numbered_columns():
    frame = pd.DataFrame([["CCO", True], ["CC", False]])
    table = read_labelled(frame)
    assert table.targets[0].kind == "classification"
    np.testing.assert_array_equal(table.values[:, 0], [1, 0])

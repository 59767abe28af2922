"""Reading single target cells: numbers, gaps, classes, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molscore.data.classes import detect_classes, parse_class, require_classes
from molscore.data.targets import Target
from molscore.data.values import detect_decimals, is_gap, is_number_like, parse_number
from molscore.errors import ConfigError


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_python_writes_is_read_exactly(number):
    assert parse_number(repr(number)) == number
    assert parse_number(f"  {number!r}\t") == number
    assert parse_number(repr(number).replace(".", ","), ",") == number
    assert is_number_like(repr(number))


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("+.5", 0.5), ("5.", 5), ("-1E3", -1000), ("007", 7), ("\u22120.77", -0.77)],
)
def test_spellings_of_numbers(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "  ", "NA", "na", "N/A", "n/a", "NaN", "nan", "null", "None", "#N/A", "<NA>"]
)
def test_gaps(text):
    assert is_gap(text)
    assert math.isnan(parse_number(text))
    assert math.isnan(parse_class(text, ("0", "1")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<0.1", "qualified"),
        (">5", "qualified"),
        ("> 5", "qualified"),
        (">=5", "qualified"),
        ("≤5", "qualified"),
        ("= 5", "qualified"),
        ("~2", "qualified"),
        ("inf", "not a finite number"),
        ("-Infinity", "not a finite number"),
        ("1e999", "not a finite number"),
        ("-", "not a number"),
        ("5 mg/L", "not a number"),
        ("1.2±0.1", "not a number"),
        ("1-2", "not a number"),
        ("1_000", "not a number"),
        ("\u0665", "not a number"),
        ("0x10", "not a number"),
        ("5%", "not a number"),
        ("1,5", "decimal comma or a thousands separator"),
        ("1,234", "decimal comma or a thousands separator"),
        ("1,234.5", "thousands separators"),
        ("1.234,5", "thousands separators"),
        ("1 234", "thousands separators"),
        ("1'234.5", "thousands separators"),
    ],
)
def test_what_is_no_plain_number_is_refused_with_the_reason(text, reason):
    result = parse_number(text)
    assert isinstance(result, str)
    assert reason in result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1.5", "a point in a table with decimal commas"),
        ("1.234,5", "thousands separators"),
        ("<1,5", "qualified"),
    ],
)
def test_points_are_refused_where_commas_are_decimal(text, reason):
    assert reason in parse_number(text, ",")


@pytest.mark.parametrize(
    ("text", "decimal", "reason"),
    [
        ("1,100", ".", "a thousands separator; write the number without it"),
        ("1.100", ",", "a thousands separator; write the number without it"),
        ("1,5", ".", "a comma in a table with decimal points"),
        ("1.5", ",", "a point in a table with decimal commas"),
    ],
)
def test_a_decimal_mark_that_was_given_leaves_no_doubt(text, decimal, reason):
    assert parse_number(text, decimal, given=True) == reason


@pytest.mark.parametrize(
    ("columns", "marks"),
    [
        ([["1,5", "2"]], [","]),
        ([["-0,772", "2"]], [","]),
        ([["12,3456"]], [","]),
        ([["1,5", "2.5"]], ["."]),
        ([["1,234", "5,678"]], ["."]),
        ([["1,234", "5,678"], ["0,5", "NA"]], [",", ","]),
        ([["1.5"], ["0,5"]], [".", ","]),
        ([["1", "2"]], ["."]),
        ([["<1,5", "2,25e-3"]], [","]),
        ([[]], ["."]),
    ],
)
def test_decimal_commas_are_found_where_they_are_proved(columns, marks):
    assert detect_decimals(columns) == marks


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["0", "1", "1"], ("0", "1")),
        (["0.0", "1.0", "NA", ""], ("0", "1")),
        (["True", "FALSE"], ("false", "true")),
        (["yes", "no", "YES"], ("no", "yes")),
        (["active", "Inactive", "n/a"], ("inactive", "active")),
        (["active"], ("inactive", "active")),
        (["1", "1"], None),
        (["0", "1", "2"], None),
        (["0", "1", "<1"], ("0", "1")),
        (["0", "1.0", "inconclusive", "NA"], ("0", "1")),
        (["0", "1", "yes", "no"], ("0", "1")),
        (["0", "1", "0.5", "inconclusive"], None),
        (["1", "inconclusive"], None),
        (["active", "inactive", "inconclusive"], ("inactive", "active")),
        (["Soluble", "INSOLUBLE", ""], ("insoluble", "soluble")),
        (["mutagenic", "non-mutagenic"], ("non-mutagenic", "mutagenic")),
        (["nontoxic", "toxic"], ("nontoxic", "toxic")),
        (["toxic", "non toxic", "equivocal"], ("non toxic", "toxic")),
        (["blocker", "Non-Blocker"], ("non-blocker", "blocker")),
        (["unstable", "stable"], ("unstable", "stable")),
        (["impermeable", "permeable"], ("impermeable", "permeable")),
        (["irreversible", "reversible"], ("irreversible", "reversible")),
        (["not  inhibiting", "inhibiting"], ("not inhibiting", "inhibiting")),
        (["BBB+", "BBB-"], ("bbb-", "bbb+")),
        (["toxic", "nontoxic", "soluble", "insoluble"], None),
        (["hit", "miss"], None),
        (["active", "1.5", "inactive"], None),
        (["yes", "active"], None),
        (["CI", "CM", "CA"], None),
        (["", "NA"], None),
        ([], None),
    ],
)
def test_two_classes_are_found(cells, classes):
    assert detect_classes(cells) == classes


def test_zero_and_one_among_decimal_commas_are_numbers():
    assert detect_classes(["0", "1", "0,5", "1,5"], ",") is None
    assert detect_classes(["0", "1", "1,0"], ",") == ("0", "1")


@pytest.mark.parametrize("odd", [["0", "1", "<1"], ["active", "inactive", "inconclusive"]])
def test_a_strict_look_takes_nothing_odd(odd):
    assert detect_classes(odd, strict=True) is None
    assert detect_classes(odd[:2], strict=True) is not None


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["active", "1.5", "inactive"], ("inactive", "active")),
        (["1", "1"], ("0", "1")),
        (["0", "1", "2"], ("0", "1")),
        (["soluble", "insoluble", "odd"], ("insoluble", "soluble")),
    ],
)
def test_classes_that_are_asked_for(cells, classes):
    assert require_classes(cells) == classes


def test_classes_that_are_asked_for_and_not_clear():
    said = require_classes(["hit", "Miss", ""])
    assert "0/1, false/true" in said
    assert "inactive/active" in said
    assert said.endswith("it holds 'hit', 'miss'")
    assert "and 26 more" in require_classes(
        [str(i / 7) for i in range(1, 7)] + ["a"] * 3 + [f"w{i}" for i in range(23)]
    )


def test_classes_are_read():
    assert parse_class("Non  toxic", ("non toxic", "toxic")) == 0.0
    assert parse_class(" Active ", ("inactive", "active")) == 1.0
    assert parse_class("1.0", ("0", "1")) == 1.0
    assert parse_class("2", ("0", "1")) == "not one of the classes 0 and 1"
    assert "inactive and active" in parse_class("CM", ("inactive", "active"))


# --- targets ------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["none", "log10", "ln", "log1p"])
@given(value=st.floats(1e-9, 1e9))
def test_transforms_and_back(transform, value):
    target = Target(name="y", transform=transform)
    values = np.array([value, np.nan])
    back = target.inverse(target.forward(values))
    assert back[0] == pytest.approx(value, rel=1e-6, abs=1e-15)
    assert np.isnan(back[1])


def test_transforms_are_undefined_rather_than_infinite():
    values = np.array([0.0, -1.0, -2.0])
    assert np.isnan(Target(name="y", transform="log10").forward(values)).all()
    assert np.isnan(Target(name="y", transform="ln").forward(values)).all()
    shifted = Target(name="y", transform="log1p").forward(values)
    assert shifted[0] == 0
    assert np.isnan(shifted[1:]).all()


def test_transforms_are_the_functions_they_are_called():
    assert Target(name="y", transform="log10").forward(np.array([1000.0])) == pytest.approx(3)
    assert Target(name="y", transform="ln").forward(np.array([np.e**2])) == pytest.approx(2)
    assert Target(name="y", transform="log1p").forward(np.array([np.e - 1])) == pytest.approx(1)


def test_a_target_survives_json():
    target = Target(name="y", kind="classification", classes=("no", "yes"), note="at pH 7")
    assert Target.from_dict(target.to_dict()) == target
    assert Target(name="y", kind="classification").classes == ("0", "1")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "classification", "transform": "log10"}, "takes no transform"),
        ({"classes": ("a", "b")}, "has no classes"),
        ({"kind": "classification", "classes": ("a",)}, "two classes"),
    ],
)
def test_settings_that_do_not_go_together(settings, words):
    with pytest.raises(ConfigError, match=words):
        Target(name="y", **settings)

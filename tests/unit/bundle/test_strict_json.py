import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molscore.bundle.strict_json import MAX_DEPTH, dump_object, parse_object
from molscore.errors import BundleError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)  # fmt: skip


def parse(text: str | bytes) -> dict:
    raw = text.encode() if isinstance(text, str) else text
    return parse_object(raw, where="x", max_bytes=1 << 20)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_what_is_dumped_comes_back(value: dict) -> None:
    assert parse(dump_object(value)) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[1]", "expected a JSON object, got list"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "1e999 is out of range"),
        ('{"a": ' + "9" * 5000 + "}", "integer of 5000 digits"),
        ('{"a": 1, "a": 2}', "key 'a' stands twice"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (r'{"a": ["\ud800"]}', "half of a surrogate pair"),
        (r'{"\udc00": 1}', "half of a surrogate pair"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested deeper than"),
        ('{"a": "' + "x" * (1 << 20) + '"}', "more than the 1048576 allowed"),
    ],
)
def test_hostile_json_is_refused_with_the_reason(text: str | bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words.replace("(", r"\(")):
        parse(text)


def test_nan_is_not_written() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        dump_object({"a": float("nan")})


def test_the_result_is_json_for_any_reader() -> None:
    assert json.loads(dump_object({"é": [1, None]})) == {"é": [1, None]}

"""What the writer writes, the reader reads; what anything writes, it survives."""

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molscore.data.tables import TableOptions, format_float, open_table, open_writer
from molscore.errors import MolscoreError

# NUL makes a record untrustworthy by design; surrogates are no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
CELL = TEXT | st.sampled_from(["", " ", '"', '""', ",", "\t", "\r\n", "\n", "\r", " a ", "NA", "#"])


@st.composite
def tables(draw):
    n_columns = draw(st.integers(1, 4))
    names = draw(st.lists(TEXT, min_size=n_columns, max_size=n_columns))
    names[0] = "smiles" + names[0]
    rows = draw(st.lists(st.lists(CELL, min_size=n_columns, max_size=n_columns), max_size=6))
    return names, rows


@pytest.mark.parametrize("form", ["csv", "tsv"])
@given(table=tables())
@settings(max_examples=150, deadline=None)
def test_text_tables(form, table):
    names, rows = table
    options = TableOptions(
        format=form,
        separator="," if form == "csv" else "tab",
        header="yes",
        encoding="utf-8",
        smiles_column="1" if names[0] not in names[1:] else None,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{form}"
        with open_writer(path, names) as writer:
            writer.write(rows)
        if names[0] in names[1:] or "1" in [name.strip() for name in names]:
            return
        with open_table(path, options) as reader:
            assert reader.columns == names
            records = list(reader)
    assert [record.fields for record in records] == rows
    assert all(record.problem is None for record in records)


@given(rows=st.lists(st.tuples(CELL, st.floats(width=32, allow_nan=True, allow_infinity=False))))
@settings(max_examples=60, deadline=None)
def test_typed_tables(rows):
    with tempfile.TemporaryDirectory() as folder:
        for form in ("jsonl", "parquet"):
            with open_writer(Path(folder) / f"t.{form}", ["smiles", "y"]) as writer:
                writer.write(rows)
        lines = (Path(folder) / "t.jsonl").read_bytes().decode().split("\n")[:-1]
        with open_table(Path(folder) / "t.parquet") as reader:
            parquet = [record.fields for record in reader]
    objects = [json.loads(line) for line in lines]
    assert [item["smiles"] for item in objects] == [text for text, _ in rows]
    assert [fields[0] for fields in parquet] == [text for text, _ in rows]
    for item, fields, (_, number) in zip(objects, parquet, rows, strict=True):
        if math.isnan(number):
            assert item["y"] is None
            assert fields[1] == ""
        else:
            assert item["y"] == float(fields[1]) == float(format_float(number))
            assert item["y"] == pytest.approx(number, rel=6e-6, abs=0)


@given(
    names=st.lists(
        st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8),
        min_size=3,
        max_size=3,
    )
)
@settings(max_examples=60, deadline=None)
def test_our_own_output_is_understood_without_options(names):
    columns = ["id", "smiles", "pred_y", "pred_y_sd", "status", "error"]
    rows = [
        [names[0], "CCO", -0.5, 0.1, "ok", None],
        [names[1], "C[/x]", None, None, "invalid_smiles", "syntax error, near position 3"],
        [names[2], "", None, None, "empty", "no SMILES"],
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("t.csv", "t.tsv", "t.parquet"):
            with open_writer(Path(folder) / name, columns) as writer:
                writer.write(rows)
            with open_table(Path(folder) / name) as reader:
                assert (reader.columns, reader.smiles_index) == (columns, 1)
                records = [record.fields for record in reader]
            assert records[0] == [names[0], "CCO", "-0.5", "0.1", "ok", ""]
            assert records[1][5] == "syntax error, near position 3"
            assert records[2][:2] == [names[2], ""]


# fmt: off
PIECES = st.sampled_from([
    "smiles", "SMILES", "y", "CCO", "c1ccccc1", "[Na+]", "C1", "1.5", "<2", "name",
    "\ufeff", "é", ",", ",", ";", "|", "#", "V2000", "'", " ", "\t", "\n", "\n", "\r\n",
    "\r", "\0", "$$$$\n", "M  END\n", "> <p>\n", '"', '"',
])
# fmt: on


@given(
    content=st.binary(max_size=80)
    | st.lists(PIECES, max_size=40).map("".join).map(str.encode)
    | st.builds(
        str.encode,
        st.lists(PIECES, max_size=20).map("".join),
        st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-16-le"]),
        st.just("replace"),
    ),
    ending=st.sampled_from(["csv", "txt", "smi", "sdf", "tsv"]),
)
@settings(max_examples=400, deadline=None)
def test_any_bytes_give_records_or_a_plain_error(content, ending):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{ending}"
        path.write_bytes(content)
        try:
            with open_table(path) as reader:
                records = list(reader)
        except MolscoreError as error:
            assert str(error).startswith(str(path))
            assert "\n" not in str(error)
            return
    assert 0 <= reader.smiles_index < len(reader.columns)
    assert [record.row for record in records] == list(range(len(records)))
    assert all(len(record.fields) == len(reader.columns) for record in records)
    lines = [record.line for record in records]
    assert lines == sorted(set(lines))

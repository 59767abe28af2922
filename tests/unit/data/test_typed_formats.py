"""Workbooks, Parquet and SDF as tables."""

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdkit import Chem, RDConfig

from molscore.data.structures import MAX_BLOCK_CHARS
from molscore.data.tables import TableOptions, open_table
from molscore.errors import ConfigError, InputError

FRAME = pd.DataFrame(
    {
        "id": [7, 8, 9],
        "SMILES": ["CCO", None, "CCN"],
        "y": [0.1, float("nan"), -2.5],
        "ok": [True, False, True],
        "when": pd.to_datetime(["2020-01-01", None, "2021-02-03"]),
    }
)
FIELDS = [
    ["7", "CCO", "0.1", "true", "2020-01-01T00:00:00"],
    ["8", "", "", "false", ""],
    ["9", "CCN", "-2.5", "true", "2021-02-03T00:00:00"],
]


def read(path, **options):
    with open_table(path, TableOptions(**options)) as reader:
        return reader, list(reader)


def feed_stdin(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# --- xlsx ---------------------------------------------------------------------------------


def test_a_workbook(tmp_path):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    reader, records = read(tmp_path / "t.xlsx")
    assert (reader.columns, reader.smiles_index) == (list(FRAME.columns), 1)
    assert [record.fields for record in records] == FIELDS
    assert [(record.row, record.line) for record in records] == [(0, 2), (1, 3), (2, 4)]
    assert reader.info.notes == ()


def test_a_workbook_by_any_name_and_from_stdin(tmp_path, monkeypatch):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    content = (tmp_path / "t.xlsx").read_bytes()
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "t.xlsx.gz").write_bytes(gzip.compress(content))
    feed_stdin(monkeypatch, content)
    for path in (tmp_path / "t.csv", tmp_path / "t.xlsx.gz", "-"):
        assert [record.fields for record in read(path)[1]] == FIELDS


def test_the_first_sheet_that_is_not_empty_and_blank_rows(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("data")
    for row in ([], ["SMILES", "name", None], [], ["CCO"], [None, None], ["CC", "x", None], []):
        sheet.append(row)
    book.create_sheet("more").append(["smiles"])
    book.save(tmp_path / "t.xlsx")
    reader, records = read(tmp_path / "t.xlsx")
    assert reader.columns == ["SMILES", "name"]
    assert [record.fields for record in records] == [["", ""], ["CCO", ""], ["", ""], ["CC", "x"]]
    assert [record.problem for record in records] == [None] * 4
    assert "'data' is read, not 'notes', 'more'" in reader.info.notes[0]
    assert read(tmp_path / "t.xlsx", sheet="more")[1] == []
    with pytest.raises(ConfigError, match=r"no sheet 'x'; it has 'notes', 'data', 'more'"):
        read(tmp_path / "t.xlsx", sheet="x")
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path / "t.xlsx", sheet="notes")


def test_a_sheet_without_header(tmp_path):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    reader, records = read(tmp_path / "t.xlsx")
    assert reader.columns == ["column_1", "smiles", "column_3", "column_4", "column_5"]
    assert len(records) == 3


# --- parquet ------------------------------------------------------------------------------


def test_parquet(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "t.parquet")
    feed_stdin(monkeypatch, (tmp_path / "t.parquet").read_bytes())
    for path in (tmp_path / "t.parquet", "-"):
        reader, records = read(path)
        assert (reader.columns, reader.smiles_index) == (list(FRAME.columns), 1)
        assert [record.fields for record in records] == FIELDS
        assert [(record.row, record.line) for record in records] == [(0, 1), (1, 2), (2, 3)]


def test_parquet_of_narrow_numbers_and_of_bytes(tmp_path):
    columns = {
        "smiles": pa.array([b"CCO", b"CCN"]),
        "y": pa.array([0.1, None], pa.float32()),
        "half": pa.array(np.array([0.1, -2], np.float16)),
        "raw": pa.array([b"\xff", None]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    _, records = read(tmp_path / "t.parquet")
    assert records[0].fields == ["CCO", "0.1", "0.1", r"b'\xff'"]
    assert records[1].fields == ["CCN", "", "-2.0", ""]


def test_parquet_of_many_batches_and_odd_types(tmp_path):
    n = 3000
    table = pa.table(
        {
            "smiles": pa.array([f"C{'C' * (i % 50)}" for i in range(n)]).dictionary_encode(),
            "x": pa.array([i / 3 for i in range(n)], pa.float32()),
            "list": [[i, None] for i in range(n)],
            "text": pa.array(["NA", "007", None] * 1000, pa.large_string()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    _, records = read(tmp_path / "t.parquet")
    assert len(records) == n
    assert records[-1].fields == [f"C{'C' * (2999 % 50)}", "999.6667", "[2999, None]", ""]
    assert records[0].fields[3] == "NA"


# --- what is damaged or does not go together -----------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xlsx", b"PK\x03\x04" + bytes(200), "not an xlsx workbook that can be read"),
        ("t.parquet", b"PAR1" + bytes(200), "not a Parquet file that can be read"),
        ("t.xlsx", b"smiles\nCCO\n", "is not xlsx, as its name says"),
        ("t.parquet", b"smiles\nCCO\n", "is not parquet, as its name says"),
    ],
)
def test_damaged_files(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read(tmp_path / name)


def test_a_zip_that_is_no_workbook(tmp_path):
    (tmp_path / "t.csv").write_text("smiles\nCCO\n")
    frame = FRAME[["id"]]
    frame.to_csv(tmp_path / "t.zip", compression="zip")
    with pytest.raises(InputError, match="not an xlsx workbook"):
        read(tmp_path / "t.zip")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sheet": "a"}, "--sheet goes with xlsx"),
        ({"format": "xlsx"}, "is not xlsx"),
        ({"format": "parquet"}, "is not parquet"),
    ],
)
def test_options_that_do_not_go_with_text(tmp_path, options, words):
    (tmp_path / "t.csv").write_text("smiles\nCCO\n")
    with pytest.raises((ConfigError, InputError), match=words):
        read(tmp_path / "t.csv", **options)


@pytest.mark.parametrize(
    ("options", "words"), [({"separator": ";"}, "does not go with"), ({"header": "no"}, "header")]
)
def test_options_that_do_not_go_with_parquet(tmp_path, options, words):
    FRAME.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match=words):
        read(tmp_path / "t.parquet", **options)


# --- sdf ----------------------------------------------------------------------------------

NCI = Path(RDConfig.RDDataDir) / "NCI" / "first_200.props.sdf"


def sdf_block(smiles, name="", end="\n", **properties):
    lines = [
        *Chem.MolToMolBlock(Chem.MolFromSmiles(smiles, sanitize=False), kekulize=False)
        .rstrip("\n")
        .split("\n")
    ]
    lines[0] = name
    for key, value in properties.items():
        lines += [f">  <{key}>  (1) ", *str(value).split("\n"), ""]
    return end.join([*lines, "$$$$", ""])


def test_an_sdf_against_rdkit():
    reader, records = read(NCI)
    supplier = list(Chem.SDMolSupplier(str(NCI)))
    assert len(records) == len(supplier) == 200
    # The file has a property SMILES of its own: ours must not pass for it.
    assert reader.columns[:2] == ["block_smiles", "name"]
    for record, mol in zip(records, supplier, strict=True):
        assert record.fields[0] == Chem.MolToSmiles(mol)
        assert record.fields[1] == mol.GetProp("_Name")
        properties = dict(zip(reader.columns[2:], record.fields[2:], strict=True))
        assert {k: v for k, v in properties.items() if v} == {
            k: v for k, v in mol.GetPropsAsDict(autoConvertStrings=False).items() if v.strip()
        }


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sdf_properties_lines_and_names(tmp_path, monkeypatch, end):
    content = (
        sdf_block("CCO", "ethanol", end, logS="1.1", note="two\nlines")
        + sdf_block("C[C@H](N)O", end=end, other="x", logS="-2")
    ).encode()
    (tmp_path / "t.sdf").write_bytes(content)
    (tmp_path / "t.sdf.gz").write_bytes(gzip.compress(content))
    feed_stdin(monkeypatch, content)
    for path in (tmp_path / "t.sdf", tmp_path / "t.sdf.gz", "-"):
        reader, records = read(path)
        assert reader.columns == ["smiles", "name", "logS", "note", "other"]
        assert [record.fields for record in records] == [
            ["CCO", "ethanol", "1.1", "two\nlines", ""],
            ["C[C@H](N)O", "", "-2", "", "x"],
        ]
        assert reader.smiles_index == 0
        assert records[1].line == content.decode().split("$$$$")[0].count("\n") + 2
        assert reader.info.format == "sdf"


def test_a_mol_block_that_cannot_be_read_is_a_row(tmp_path, capfd):
    good = sdf_block("CCO", "a", y="1")
    broken = good.replace("  3  2  0", "  3  9  0")
    valence = sdf_block("CF(C)C", "c", y="3")
    (tmp_path / "t.sdf").write_text(good + broken + valence + good)
    _, records = read(tmp_path / "t.sdf")
    assert [record.fields[0] for record in records] == ["CCO", "", "", "CCO"]
    assert [record.fields[-1] for record in records] == ["1", "1", "3", "1"]
    assert records[0].problem is None
    assert "the mol block cannot be read: " in records[1].problem
    assert "greater than permitted" in records[2].problem
    assert capfd.readouterr().err == ""


def test_a_property_that_turns_up_late_on_stdin_is_told(tmp_path, monkeypatch):
    content = sdf_block("CCO", y="1") * 250 + sdf_block("CCN", y="2", z="3")
    (tmp_path / "t.sdf").write_text(content)
    assert read(tmp_path / "t.sdf")[1][-1].fields == ["CCN", "", "2", "3"]
    feed_stdin(monkeypatch, content.encode())
    reader, records = read("-")
    assert reader.columns == ["smiles", "name", "y"]
    assert records[-1].problem == "property 'z' is in none of the first records"


def test_the_last_block_may_go_without_its_end(tmp_path):
    (tmp_path / "t.mol").write_text(sdf_block("CCO", "a").removesuffix("$$$$\n"))
    assert [record.fields for record in read(tmp_path / "t.mol")[1]] == [["CCO", "a"]]


def test_an_sdf_without_ends_is_refused_in_bounded_memory(tmp_path):
    (tmp_path / "t.sdf").write_text(
        "a\n b\n\n  0  0  0     0  0            999 V2000\n"
        + ("y" * 999 + "\n") * (MAX_BLOCK_CHARS // 1000 + 1)
    )
    with pytest.raises(InputError, match=r"line 1: a record of more than .* \$\$\$\$ missing"):
        read(tmp_path / "t.sdf")


def test_a_table_that_is_called_an_sdf_is_refused(tmp_path):
    (tmp_path / "t.sdf").write_text("smiles,y\nCCO,1\n")
    with pytest.raises(InputError, match="not an SDF, as its name says"):
        open_table(tmp_path / "t.sdf")
    with open_table(tmp_path / "t.sdf", TableOptions(format="csv")) as table:
        assert [record.fields for record in table] == [["CCO", "1"]]

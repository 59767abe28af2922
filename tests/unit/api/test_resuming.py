"""predict_table that is interrupted and goes on."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from handmade_bundle import bundle_bytes

from molscore.api import distill, predict_table, train
from molscore.data import gzipped
from molscore.data.beside import partial_path
from molscore.data.records import TableOptions
from molscore.errors import ConfigError, InputError
from molscore.predict.stream import Summary

N = 1300


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.molscore").write_bytes(bundle_bytes())
    write_table(tmp_path / "in.csv", N)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_table(path: Path, n: int) -> None:
    """Cells with line ends, quotes and characters of several bytes; every 50th SMILES is bad."""
    rows = (
        f'{"bad!" if i % 50 == 0 else "C" * (i % 40 + 1)},"é✓\n""{i}""\U0001f9ea"\n'
        for i in range(n)
    )
    path.write_text("smiles,note\n" + "".join(rows))


def predict(output: str = "out.csv", *, stop_at: int | None = None, **options: Any) -> Summary:
    def stop(done: int, *_: Any) -> None:
        if stop_at is not None and done >= stop_at:
            raise KeyboardInterrupt

    settings = {"table_file": "in.csv", "model": "m.molscore", "workers": 1} | options
    table = settings.pop("table_file")
    return predict_table(table, settings.pop("model"), output, progress=stop, **settings)


def interrupted(output: str = "out.csv", stop_at: int = 600, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        predict(output, stop_at=stop_at, **options)
    assert not Path(output).exists()


@pytest.mark.parametrize(
    "options", [{}, {"skip": 100}, {"skip": 70, "limit": 1100}, {"limit": 1024}]
)
@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.csv.gz"])
def test_the_same_bytes_and_counts(
    folder: Path, name: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gzipped, "MEMBER_BYTES", 5_000)
    whole = predict(f"whole.{name}", **options)
    interrupted(name, **options)
    assert Path(f"{name}.partial").exists()
    summary = predict(name, resume=True, **options)
    assert Path(name).read_bytes() == Path(f"whole.{name}").read_bytes()
    assert (summary.n_read, summary.n_ok, summary.counts) == (
        whole.n_read,
        whole.n_ok,
        whole.counts,
    )
    assert not list(folder.glob("*.partial*"))


def test_interrupted_twice(folder: Path) -> None:
    predict("whole.csv")
    interrupted(stop_at=60)
    interrupted(stop_at=500, resume=True)
    predict(resume=True)
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_interrupted_behind_the_last_row(folder: Path) -> None:
    predict("whole.csv")
    interrupted(stop_at=N)
    summary = predict(resume=True)
    assert summary.n_read == N
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_the_rows_told_are_those_of_the_file(folder: Path) -> None:
    interrupted()
    failures = predict(resume=True).failures
    assert (failures[0].row, failures[0].line) == (1050, 2102)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 8}, "--batch-size 16, now it is 8"),
        ({"skip": 1}, "--skip 0, now it is 1"),
        ({"limit": 900}, "--limit none, now it is 900"),
        ({"model_info": True}, "the output columns"),
        ({"model": "other.molscore"}, "--model"),
        ({"table_file": "renamed.csv"}, "the input columns smiles, note, now it is smiles, other"),
    ],
)
def test_another_command_is_refused(folder: Path, options: dict[str, Any], words: str) -> None:
    Path("other.molscore").write_bytes(bundle_bytes(n_experts=3))
    text = Path("in.csv").read_text()
    Path("renamed.csv").write_text(text.replace("note", "other", 1))
    interrupted()
    before = Path("out.csv.partial").read_bytes()
    with pytest.raises(ConfigError, match=words):
        predict(resume=True, **options)
    assert Path("out.csv.partial").read_bytes() == before


def test_another_format_is_refused(folder: Path) -> None:
    interrupted("out.dat", output_format="csv")
    before = Path("out.dat.partial").read_bytes()
    with pytest.raises(ConfigError, match="begun with the output format csv, now it is tsv"):
        predict("out.dat", output_format="tsv", resume=True)
    assert Path("out.dat.partial").read_bytes() == before


def test_another_smiles_column_of_the_same_name_is_refused(folder: Path) -> None:
    Path("twice.csv").write_text("s,s\n" + "CC,CCO\n" * N)
    options = {"table_file": "twice.csv"}
    interrupted(table=TableOptions(header="yes", smiles_column="1"), **options)
    with pytest.raises(ConfigError, match="SMILES in column 1 s, now it is 2 s"):
        predict(table=TableOptions(header="yes", smiles_column="2"), resume=True, **options)


def test_another_table_is_refused(folder: Path) -> None:
    text = Path("in.csv").read_text()
    interrupted()
    Path("in.csv").write_text(text.replace('""7""', '""8""', 1))
    with pytest.raises(InputError, match=r"its rows up to row \d+ are not those read now"):
        predict(resume=True)
    Path("in.csv").write_text(text)
    assert predict(resume=True).n_read == N


def test_a_table_that_has_grown_is_gone_on_with(folder: Path) -> None:
    interrupted()
    write_table(Path("in.csv"), N + 100)
    predict("whole.csv")
    assert predict(resume=True).n_read == N + 100
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()


@pytest.mark.parametrize("options", [{}, {"skip": 100, "limit": 500}, {"limit": 0}, {"skip": N}])
@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.csv.gz", "out.jsonl.gz"])
def test_a_finished_output_is_left_alone(
    folder: Path, name: str, options: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    whole = predict(name, **options)
    before = Path(name).stat()
    with caplog.at_level("INFO", logger="molscore"):
        again = predict(name, resume=True, **options)
    assert f"{name} is finished; nothing is left to do" in caplog.text
    assert (again.n_read, again.n_ok, again.counts) == (whole.n_read, whole.n_ok, whole.counts)
    assert Path(name).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl.gz"])
def test_a_finished_output_of_something_else_is_refused(folder: Path, name: str) -> None:
    predict(name)
    Path("other.molscore").write_bytes(bundle_bytes(n_experts=3))
    with pytest.raises(ConfigError, match=r"is not what this command writes: expected .* found"):
        predict(name, resume=True, model="other.molscore")
    with pytest.raises(ConfigError, match="has 1,300 rows, and the input now 100"):
        predict(name, resume=True, limit=100)
    write_table(Path("in.csv"), N + 1)
    with pytest.raises(ConfigError, match="has 1,300 rows, and the input now 1,301"):
        predict(name, resume=True)
    Path(name).write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
    with pytest.raises(ConfigError, match="is not what this command writes"):
        predict(name, resume=True)


@pytest.mark.parametrize("changed", [7, 999, N - 1])
@pytest.mark.parametrize("name", ["out.csv", "out.tsv.gz", "out.jsonl"])
def test_a_finished_output_of_one_other_row_is_refused(
    folder: Path, name: str, changed: int
) -> None:
    predict(name)
    before = Path(name).read_bytes()
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace(f'""{changed}""', '""x""', 1))
    with pytest.raises(ConfigError, match=rf"is not what .* writes: (at row {changed + 1:,} )?exp"):
        predict(name, resume=True)
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_finished_output_of_odd_cells_is_known_again(folder: Path, form: str) -> None:
    cells = ["a\r\r\nb", "\r", " ", '""', "x" * 200_000, "\n" * 1_100, "a\tb,c", "é"]
    frame = pd.DataFrame({"smiles": ["C"] * 8 * 20, "note": cells * 20})
    frame.to_parquet("odd.parquet")
    whole = predict("out", table_file="odd.parquet", output_format=form)
    assert predict("out", table_file="odd.parquet", output_format=form, resume=True) == whole


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("out.csv.gz", lambda data: b"no gzip"),
        ("out.csv.gz", lambda data: data[:-20]),
        ("out.jsonl", lambda data: data[:-20]),
        ("out.jsonl", lambda data: data + b"[" * 100_000),
        ("out.jsonl", lambda data: data + b"{}\n"),
        ("out.csv", lambda data: data[:-1]),
        ("out.csv", lambda data: data + b"\xff\n"),
    ],
)
def test_a_damaged_finished_output_is_refused(folder: Path, name: str, damage: Any) -> None:
    predict(name)
    Path(name).write_bytes(damage(Path(name).read_bytes()))
    with pytest.raises(ConfigError, match="is not what this command writes"):
        predict(name, resume=True)


def test_an_older_output_needs_force_beside_resume(folder: Path) -> None:
    Path("out.csv").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        predict(stop_at=600, force=True)
    assert Path("out.csv").read_text() == "old"
    with pytest.raises(ConfigError, match="exists already; --force replaces it"):
        predict(resume=True)
    predict(resume=True, force=True)
    assert Path("out.csv").read_text() != "old"
    assert not partial_path(Path("out.csv")).exists()


@pytest.mark.parametrize(
    ("output", "words"),
    [("-", "name it with --output"), ("o.parquet", "cannot go on with parquet")],
)
def test_what_cannot_be_gone_on_with(folder: Path, output: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        predict(output, resume=True)
    assert not Path(output).exists()


def test_parquet_leaves_nothing_when_interrupted(folder: Path) -> None:
    interrupted("o.parquet")
    assert not list(folder.glob("o.*"))


@pytest.mark.parametrize("ending", [".partial", ".partial.json", ".partial.json.new"])
def test_an_input_is_not_written_over_on_the_way(folder: Path, ending: str) -> None:
    source = f"w.csv{ending}"
    before = Path("in.csv").read_bytes()
    Path(source).write_bytes(before)
    with pytest.raises(ConfigError, match=r"w\.csv is written by way of .*, which is the table"):
        predict("w.csv", table_file=source, force=True)
    assert Path(source).read_bytes() == before
    predict("o.parquet", table_file=source)  # has no file beside it


def test_a_table_to_exclude_is_not_written_over(folder: Path) -> None:
    Path("seen.csv").write_text("smiles\nC\n")
    for call in (
        lambda **more: train("in.csv", **more),
        lambda **more: distill("m.molscore", "in.csv", **more),
    ):
        with pytest.raises(ConfigError, match=r"seen\.csv is the table to exclude itself"):
            call(output="seen.csv", exclude=["other.csv", "seen.csv"], force=True)


def test_jsonl_keeps_the_model(folder: Path) -> None:
    interrupted("o.jsonl")
    predict("o.jsonl", resume=True)
    lines = Path("o.jsonl").read_text().split("\n")
    assert {json.loads(line)["model"] for line in lines[:-1]} == {"handmade"}

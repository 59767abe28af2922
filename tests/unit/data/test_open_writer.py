"""Tables out: bytes, atomic files, pipes, full disks."""

import errno
import gzip
import io
import json
import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from molscore.data.tables import format_float, open_writer
from molscore.errors import ConfigError, MolscoreError

COLUMNS = ["smiles", "pred_logS", "status"]
ROWS = [["c1cc[nH]c1", -0.76999998, "ok"], ["C[/x]", None, "invalid_smiles"], ["a,b\t;", 3, "ok"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.77, "-0.77"),
        (1 / 3, "0.333333"),
        (123456.7, "123457"),
        (1e-7, "1e-07"),
        (-0.0, "0"),
        (float("nan"), ""),
        (float("inf"), "inf"),
        (2.0, "2"),
    ],
)
def test_format_float(value, text):
    assert format_float(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "o.csv",
            'smiles,pred_logS,status\nc1cc[nH]c1,-0.77,ok\nC[/x],,invalid_smiles\n"a,b\t;",3,ok\n',
        ),
        (
            "o.tsv",
            "smiles\tpred_logS\tstatus\n"
            'c1cc[nH]c1\t-0.77\tok\nC[/x]\t\tinvalid_smiles\n"a,b\t;"\t3\tok\n',
        ),
        (
            "o.jsonl",
            '{"smiles": "c1cc[nH]c1", "pred_logS": -0.77, "status": "ok"}\n'
            '{"smiles": "C[/x]", "pred_logS": null, "status": "invalid_smiles"}\n'
            '{"smiles": "a,b\\t;", "pred_logS": 3, "status": "ok"}\n',
        ),
    ],
)
def test_text_formats_byte_for_byte(tmp_path, name, text):
    with open_writer(tmp_path / name, COLUMNS) as writer:
        writer.write(ROWS[:1])
        writer.write(ROWS[1:])
    assert (tmp_path / name).read_bytes() == text.encode()
    with open_writer(tmp_path / f"{name}.gz", COLUMNS) as writer:
        writer.write(ROWS)
    packed = (tmp_path / f"{name}.gz").read_bytes()
    assert gzip.decompress(packed) == text.encode()


def test_gzip_output_holds_no_time(tmp_path, monkeypatch):
    outputs = []
    for moment in (1, 2_000_000_000):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        with open_writer(tmp_path / "o.csv.gz", COLUMNS, force=True) as writer:
            writer.write(ROWS)
        outputs.append((tmp_path / "o.csv.gz").read_bytes())
    assert outputs[0] == outputs[1]


def test_a_long_row_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    smiles = "CC(C)Cc1ccc(cc1)" * 20
    with open_writer(tmp_path / "o.csv", ["smiles", "y"]) as writer:
        writer.write([[smiles, 1.5]])
    assert (tmp_path / "o.csv").read_text() == f"smiles,y\n{smiles},1.5\n"


def test_json_numbers_are_never_nan_and_repeated_names_are_numbered(tmp_path):
    with open_writer(tmp_path / "o.jsonl", ["y", "y", "y_2"]) as writer:
        writer.write([["1", float("nan"), float("inf")]])
    assert json.loads((tmp_path / "o.jsonl").read_text()) == {"y": "1", "y_2": None, "y_2_2": None}


def test_parquet_types(tmp_path):
    columns = ["smiles", "pred", "pred_sd", "n", "status"]
    with open_writer(tmp_path / "o.parquet", columns, number_columns=["pred", "pred_sd"]) as writer:
        writer.write([["C", None, None, 1, None]])
        writer.write([["N", None, None, 2, "ok"]])
    table = pq.read_table(tmp_path / "o.parquet")
    assert table.schema.names == columns
    assert [str(t) for t in table.schema.types] == ["string", "double", "double", "int64", "string"]
    assert table.to_pylist()[1] == {
        "smiles": "N",
        "pred": None,
        "pred_sd": None,
        "n": 2,
        "status": "ok",
    }


def test_parquet_without_rows(tmp_path):
    with open_writer(tmp_path / "o.parquet", ["a", "b"], number_columns=["b"]):
        pass
    table = pq.read_table(tmp_path / "o.parquet")
    assert (table.num_rows, table.schema.names) == (0, ["a", "b"])
    assert str(table.schema.types[1]) == "double"


def test_parquet_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("molscore.data.writers._GROUP_ROWS", 3)
    with open_writer(tmp_path / "o.parquet", ["a", "b"]) as writer:
        for i in range(4):
            writer.write([[f"x{i}", i + 0.5], [f"y{i}", float("nan")]])
    file = pq.ParquetFile(tmp_path / "o.parquet")
    assert file.num_row_groups == 2
    assert file.read().column("b").to_pylist() == [0.5, None, 1.5, None, 2.5, None, 3.5, None]


# --- where it goes ------------------------------------------------------------------------


def test_stdout_gets_each_block_at_once(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    with open_writer("-", ["a"]) as writer:
        assert raw.getvalue() == b"a\n"
        writer.write([["1"]])
        assert raw.getvalue() == b"a\n1\n"
    assert not raw.closed


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_can_go_to_stdout(monkeypatch, form, tmp_path):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    with open_writer("-", ["a", "b"], format=form) as writer:
        writer.write([["x", 1.5]])
    with open_writer(tmp_path / "o", ["a", "b"], format=form) as writer:
        writer.write([["x", 1.5]])
    assert raw.getvalue() == (tmp_path / "o").read_bytes()


def test_the_name_appears_only_when_all_is_written(tmp_path):
    path = tmp_path / "o.csv"
    with open_writer(path, ["a"]) as writer:
        writer.write([["1"]])
        assert not path.exists()
    assert path.read_text() == "a\n1\n"
    assert [file.name for file in tmp_path.iterdir()] == ["o.csv"]


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.jsonl", "o.parquet"])
def test_an_exception_leaves_nothing(tmp_path, name):
    with (
        pytest.raises(KeyboardInterrupt),
        open_writer(tmp_path / name, ["a"]) as writer,
    ):
        writer.write([["1"]])
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_old_file(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), open_writer(path, ["a"], force=True) as writer:
        writer.write([[1 // 0]])
    assert path.read_text() == "old"


def test_an_existing_file_needs_force(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("old")
    with pytest.raises(ConfigError, match=r"o\.csv exists already; --force"):
        open_writer(path, ["a"])
    assert path.read_text() == "old"
    with open_writer(path, ["a"], force=True):
        pass
    assert path.read_text() == "a\n"


def test_a_file_that_comes_into_being_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "o.csv"
    with pytest.raises(ConfigError, match="--force"), open_writer(path, ["a"]):
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert [file.name for file in tmp_path.iterdir()] == ["o.csv"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "o.csv").symlink_to("real.csv")
    with open_writer(tmp_path / "o.csv", ["a"], force=True):
        pass
    assert (tmp_path / "o.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n"


def test_a_circle_of_links(tmp_path):
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(ConfigError, match="cannot write"):
        open_writer(tmp_path / "a.csv", ["a"], force=True)


def test_a_name_as_long_as_the_file_system_takes(tmp_path):
    with open_writer(tmp_path / f"{'o' * 251}.csv", ["a"]):
        pass
    assert [file.name for file in tmp_path.iterdir()] == [f"{'o' * 251}.csv"]
    with pytest.raises(ConfigError, match="too long"):
        open_writer(tmp_path / f"{'o' * 252}.csv", ["a"])


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with open_writer(tmp_path / "o.csv", ["a"]):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "o.csv").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["o", "o.txt", "o.xlsx", "o.parquet.gz"])
def test_a_name_that_tells_no_format(tmp_path, name):
    with pytest.raises(ConfigError, match="cannot tell the format"):
        open_writer(tmp_path / name, ["a"])
    assert list(tmp_path.iterdir()) == []


def test_folders(tmp_path):
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        open_writer(tmp_path / "d.csv", ["a"])
    with pytest.raises(ConfigError, match="does not exist"):
        open_writer(tmp_path / "none" / "o.csv", ["a"])


@pytest.fixture
def no_new_files(monkeypatch):
    """A folder in which files can be written but none can be made."""
    real_open = Path.open

    def open_existing(self, mode="r", *args, **kwargs):
        if "x" in mode:
            raise OSError(errno.EROFS, "Read-only file system")
        return real_open(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", open_existing)


@pytest.mark.usefixtures("no_new_files")
def test_a_mounted_file_whose_folder_takes_no_other(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("a much longer old text than the new one\n" * 3)
    with open_writer(path, ["a"], force=True) as writer:
        writer.write([["1"]])
    assert path.read_text() == "a\n1\n"


@pytest.mark.usefixtures("no_new_files")
def test_half_a_table_is_not_left_in_a_mounted_file(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), open_writer(path, ["a"], force=True) as writer:
        writer.write([["1"]])
        writer.write([[1 // 0]])
    assert path.read_text() == ""


@pytest.mark.usefixtures("no_new_files")
def test_a_folder_that_takes_no_file(tmp_path):
    with pytest.raises(MolscoreError, match=r"cannot write .*Read-only file system"):
        open_writer(tmp_path / "o.csv", ["a"])


def test_a_mounted_file_that_cannot_be_renamed_over(tmp_path, monkeypatch):
    path = tmp_path / "o.csv"
    path.write_text("old")

    def busy(self, target):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    with open_writer(path, ["a"], force=True):
        pass
    assert path.read_text() == "a\n"
    assert [file.name for file in tmp_path.iterdir()] == ["o.csv"]


def test_a_device():
    with open_writer("/dev/null", ["a"], format="csv") as writer:
        writer.write([["1"]])


def test_stdout_by_the_name_of_its_device():
    code = (
        "from molscore.data.tables import open_writer\n"
        "with open_writer('/dev/stdout', ['a'], format='csv') as writer: writer.write([['1']])"
    )
    assert subprocess.check_output([sys.executable, "-c", code]) == b"a\n1\n"


def test_a_stdout_that_does_not_block():
    code = (
        "import os; os.set_blocking(1, False)\n"
        "from molscore.data.tables import open_writer\n"
        "with open_writer('-', ['a']) as writer: writer.write([['x' * 99]] * 20_000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    time.sleep(0.5)
    assert len(process.communicate()[0]) == 2_000_002
    assert process.returncode == 0


# --- what goes wrong ----------------------------------------------------------------------


FULL = """
from molscore.data.tables import open_writer
from molscore.errors import MolscoreError
try:
    open_writer("-", ["a"])
except MolscoreError as error:
    import sys
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_behind_stdout_is_said_once():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", FULL],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "cannot write stdout: No space left on device\n"
    assert done.returncode == 1


LIMITED = """
import os, resource, sys
from molscore.data.tables import open_writer
from molscore.errors import MolscoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    with open_writer(sys.argv[1], ["a", "b"]) as writer:
        for _ in range(400):
            writer.write([[os.urandom(20).hex(), i / 7] for i in range(50)])
except MolscoreError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.jsonl", "o.parquet"])
def test_a_file_that_cannot_grow_leaves_nothing(tmp_path, name):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 1
    assert done.stdout == f"cannot write {tmp_path / name}: File too large; nothing was kept\n"
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 200_000


PIPE = """
import sys
from molscore.data.tables import open_writer
try:
    with open_writer("-", ["a"]) as writer:
        while True:
            writer.write([["1"]] * 1000)
except BrokenPipeError:
    sys.exit(141)
"""


def test_a_closed_pipe_stays_a_broken_pipe_and_nothing_fails_after_it():
    process = subprocess.Popen(
        [sys.executable, "-c", PIPE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"a\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141

"""Outputs that outlive an interruption: gone on with byte for byte, or refused with the reason."""

import errno
import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molscore.data import gzipped
from molscore.data.beside import partial_path, spare, state_path
from molscore.data.kept import KeptOutput
from molscore.data.marks import Mark, RowsHash, thin_out, whole_marks
from molscore.data.records import Record
from molscore.data.tables import open_writer
from molscore.errors import ConfigError, InputError

COLUMNS = ["smiles", "note"]
RECORDS = [
    Record(i, i + 2, ["C" * (i % 5 + 1), f'"{i}", é✓\n\U0001f9ea{"x" * (i % 7)}'], None)
    for i in range(60)
]
ABOUT = {"model": ["abc"], "--batch-size": 16}


class Killed(BaseException):
    pass


def write(
    path: Path,
    *,
    until: int | None = None,
    resume: bool = False,
    force: bool = False,
    records: list[Record] = RECORDS,
    about: dict = ABOUT,
) -> None:
    """Write the records ten at a time; stop in the middle of the chunk behind row `until`."""
    kept = KeptOutput(path, about, force=force, resume=resume)
    source = iter(records)
    if resume:
        try:
            kept.continue_from(source, 0)
        except BaseException:
            kept.discard()
            raise
    left = list(source)
    with open_writer(path, COLUMNS, output=kept) as writer:
        for start in range(0, len(left), 10):
            chunk = left[start : start + 10]
            if until is not None and chunk[0].row >= until:
                writer.write([r.fields for r in chunk[:5]])
                raise Killed
            writer.write([r.fields for r in chunk])
            kept.advance(chunk, {"ok": chunk[-1].row + 1}, whole=writer.whole)


@pytest.fixture
def small_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzipped, "MEMBER_BYTES", 500)


NAMES = ("o.csv", "o.tsv", "o.jsonl", "o.csv.gz", "o.jsonl.gz")


@pytest.mark.usefixtures("small_members")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("until", [10, 30, 50])
def test_the_same_bytes_as_without_an_interruption(tmp_path: Path, name: str, until: int) -> None:
    write(tmp_path / f"whole.{name}")
    with pytest.raises(Killed):
        write(tmp_path / name, until=until)
    assert not (tmp_path / name).exists()
    if partial_path(tmp_path / name).exists():  # one gzip member may not have ended yet
        write(tmp_path / name, resume=True)
    else:
        assert name.endswith(".gz")
        write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole.{name}").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, f"whole.{name}"])


@pytest.mark.usefixtures("small_members")
@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz"])
def test_cut_anywhere(tmp_path: Path, name: str) -> None:
    """As after a power cut: the file is shorter than what was said of it."""
    path = tmp_path / name
    write(tmp_path / f"whole.{name}")
    with pytest.raises(Killed):
        write(path, until=40)
    partial, state = partial_path(path), state_path(partial_path(path))
    data, note = partial.read_bytes(), state.read_bytes()
    first = json.loads(note)["marks"][0]["n_bytes"]
    for n in [*range(first, len(data), 37), len(data)]:
        partial.write_bytes(data[:n])
        state.write_bytes(note)
        write(path, resume=True, force=True)
        assert path.read_bytes() == (tmp_path / f"whole.{name}").read_bytes()
    partial.write_bytes(data[: first - 1])
    state.write_bytes(note)
    with pytest.raises(ConfigError, match="is not as it was written"):
        write(path, resume=True, force=True)


def test_gzip_members_are_one_text(tmp_path: Path, small_members: None) -> None:
    write(tmp_path / "o.csv")
    write(tmp_path / "o.csv.gz")
    packed = (tmp_path / "o.csv.gz").read_bytes()
    assert packed.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") > 2
    assert gzip.decompress(packed) == (tmp_path / "o.csv").read_bytes()


def test_gzip_of_nothing_is_still_gzip(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.jsonl.gz", COLUMNS):
        pass
    assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()) == b""


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """An output that was interrupted behind row 30."""
    path = tmp_path / "o.csv"
    with pytest.raises(Killed):
        write(path, until=30)
    return path


def test_what_was_interrupted_is_in_the_way_of_another_run(half: Path) -> None:
    before = partial_path(half).read_bytes()
    with pytest.raises(ConfigError, match=r"o\.csv\.partial holds rows .* --resume .* --force"):
        write(half)
    assert partial_path(half).read_bytes() == before
    write(half, force=True)
    assert half.read_text().count("ok") == 0
    assert [p.name for p in half.parent.iterdir()] == ["o.csv"]


def test_an_interruption_before_the_first_mark_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        write(tmp_path / "o.csv", until=0)
    assert list(tmp_path.iterdir()) == []


def test_stopped_while_the_state_is_written(half: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Path, target: Path) -> None:
        raise Killed

    state = state_path(partial_path(half)).read_bytes()
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Path, "replace", stop)
        write(half, resume=True)
    assert state_path(partial_path(half)).read_bytes() == state
    assert len(list(half.parent.iterdir())) == 2
    write(half, resume=True)
    assert [p.name for p in half.parent.iterdir()] == ["o.csv"]


def test_a_kill_before_the_first_mark_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    KeptOutput(path, ABOUT, force=False, resume=False)._stream.close()  # as if killed
    assert partial_path(path).exists()
    write(path, resume=True)
    path.unlink()
    KeptOutput(path, ABOUT, force=False, resume=False)._stream.close()
    write(path)
    assert path.exists()


def test_nothing_to_go_on_with_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="molscore"):
        write(tmp_path / "o.csv", resume=True)
    assert "o.csv.partial: starting with the first row" in caplog.text
    assert (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({**ABOUT, "model": ["xyz"]}, "was begun with model abc, now it is xyz"),
        ({**ABOUT, "--batch-size": None}, "was begun with --batch-size 16, now it is none"),
        ({"model": ["abc"]}, "was begun with --batch-size 16"),
    ],
)
def test_another_command_is_refused(half: Path, about: dict, words: str) -> None:
    before = partial_path(half).read_bytes()
    with pytest.raises(ConfigError, match=words):
        write(half, resume=True, about=about)
    assert partial_path(half).read_bytes() == before


@pytest.mark.parametrize("changed", [0, 29])
def test_another_table_is_refused(half: Path, changed: int) -> None:
    records = list(RECORDS)
    records[changed] = records[changed]._replace(fields=["N", "other"])
    before = partial_path(half).read_bytes()
    with pytest.raises(InputError, match="was made of another table"):
        write(half, resume=True, records=records)
    with pytest.raises(InputError, match="was made of another table"):
        write(half, resume=True, records=RECORDS[:20])
    assert partial_path(half).read_bytes() == before
    write(half, resume=True, records=[*RECORDS[:30], RECORDS[30]._replace(fields=["N", "new"])])
    assert half.read_text().endswith("N,new\n")


def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    partial = partial_path(tmp_path / "o.csv")
    partial.write_text("theirs")
    with pytest.raises(ConfigError, match="holds rows of a run"):
        write(tmp_path / "o.csv")
    with pytest.raises(ConfigError, match=r"partial\.json is missing"):
        write(tmp_path / "o.csv", resume=True)
    for text in ("{", "[]", '{"schema": 1}', '{"schema": 1, "about": {}, "marks": [{}]}'):
        state_path(partial).write_text(text)
        with pytest.raises(ConfigError, match="cannot be read"):
            write(tmp_path / "o.csv", resume=True)
    state_path(partial).write_text('{"schema": 99}')
    with pytest.raises(ConfigError, match="schema 99"):
        write(tmp_path / "o.csv", resume=True)
    assert partial.read_text() == "theirs"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("place", ["", ".json", ".json.new"])
def test_no_link_is_followed(
    tmp_path: Path, half: Path, place: str, link: Callable, resume: bool, force: bool
) -> None:
    """A stranger can foresee the names, and may have put a link there."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    name = Path(f"{partial_path(half)}{place}")
    name.unlink(missing_ok=True)
    link(victim, name)
    with pytest.raises(ConfigError, match=r"is a link|has a second name"):
        write(half, resume=resume, force=force or not resume)
    assert victim.read_text() == "theirs"
    assert os.path.lexists(name)


@pytest.mark.parametrize("place", [state_path, lambda partial: spare(state_path(partial))])
def test_a_state_that_is_not_ours_is_left_alone(tmp_path: Path, place: Callable) -> None:
    name = place(partial_path(tmp_path / "o.csv"))
    name.write_text('{"mine": 1}')
    for force in (False, True):
        with pytest.raises(ConfigError, match=rf"{name.name} is in the way: .* not its own"):
            write(tmp_path / "o.csv", force=force)
    assert name.read_text() == '{"mine": 1}'
    assert [path.name for path in tmp_path.iterdir()] == [name.name]


def test_a_state_cut_by_a_power_cut_is_started_again(half: Path) -> None:
    for text in ("", '{"sch', '{"schema": 1, "ab'):
        state_path(partial_path(half)).write_text(text)
        partial_path(half).touch()
        write(half, force=True)
        assert [p.name for p in half.parent.iterdir()] == ["o.csv"]


def test_the_lock_holds_until_the_file_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptOutput(tmp_path / "o.csv", ABOUT, force=False, resume=False)
    rename = Path.replace

    def try_another(self: Path, target: Path) -> Path:
        with pytest.raises(ConfigError, match="is being written by another run"):
            KeptOutput(tmp_path / "o.csv", ABOUT, force=False, resume=True)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", try_another)
    kept.commit()
    assert [p.name for p in tmp_path.iterdir()] == ["o.csv"]
    assert kept.closed


def test_a_file_that_another_run_finished_meanwhile(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish(*_: object) -> None:
        partial_path(half).rename(half)

    monkeypatch.setattr("fcntl.flock", finish)
    with pytest.raises(ConfigError, match="was just finished or dropped by another run"):
        write(half, resume=True)
    assert half.exists()


def refusing(error: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system refuse to open or make `path`."""
    opening, making = os.open, Path.open

    def open_number(name: Path, *more: int) -> int:
        if Path(name) == path:
            raise OSError(error, os.strerror(error))
        return opening(name, *more)

    def open_path(self: Path, *more: str, **options: str) -> IO:
        if self == path:
            raise OSError(error, os.strerror(error))
        return making(self, *more, **options)

    monkeypatch.setattr(os, "open", open_number)
    monkeypatch.setattr(Path, "open", open_path)


def test_a_partial_file_of_another_user_is_an_error(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half.write_text("old")
    refusing(errno.EACCES, partial_path(half), monkeypatch)
    for resume in (False, True):
        with pytest.raises(ConfigError, match=r"partial is in the way .* \(Permission denied\)"):
            write(half, force=True, resume=resume)
    assert half.read_text() == "old"


def test_what_is_written_in_place_is_not_emptied_before_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "o.csv"
    path.write_text("old")
    refusing(errno.EACCES, partial_path(path), monkeypatch)
    with pytest.raises(ConfigError, match="is written in place"):
        write(path, resume=True, force=True)
    assert path.read_text() == "old"
    with pytest.raises(Killed):
        write(path, force=True, until=30)
    assert path.read_text() == ""  # rather than half a table
    write(path, force=True)
    assert path.read_text().startswith("smiles,note")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("number", value) for value in ("1", -1, 1.0, True, None, 10**30)),
        *(("next_row", value) for value in ([], -1, 1000)),
        *(("n_bytes", value) for value in ("x", -1, 10**9)),
        *(("output_sha256", value) for value in (1, "", "G" * 64)),
        *(("input_sha256", value) for value in (None, "\x1b[2J")),
        *(("counts", value) for value in ([], {"ok": "1"}, {"ok": -1}, {"\x1b": 10}, {})),
        ("other", 1),
    ],
)
def test_a_mark_of_a_stranger_is_checked(half: Path, field: str, value: object) -> None:
    before = partial_path(half).read_bytes()
    state = state_path(partial_path(half))
    data = json.loads(state.read_text())
    data["marks"][0][field] = value
    state.write_text(json.dumps(data))
    with pytest.raises(
        ConfigError, match=r"json (cannot be read|counts other rows)|is not as it was written"
    ) as caught:
        write(half, resume=True)
    assert str(caught.value).isprintable()
    assert partial_path(half).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"schema": 1, "about": {}, "marks": [[]]}', '{"schema": 1' + "0" * 5000],
)
def test_a_record_of_a_stranger_is_checked(half: Path, text: str) -> None:
    state_path(partial_path(half)).write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        write(half, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "\x1b[31m" * 100},
        {"about": {"model": "\x1b]0;title\x07" * 100}},
        {"about": {**ABOUT, "\x1b" * 100: 1}},
        {"about": {"model": json.loads("[" * 200 + "]" * 200)}},
    ],
)
def test_text_of_a_stranger_is_cut_and_printable(half: Path, change: dict) -> None:
    state = state_path(partial_path(half))
    state.write_text(json.dumps(json.loads(state.read_text()) | change))
    with pytest.raises(ConfigError) as caught:
        write(half, resume=True)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_long_settings_are_shown_where_they_part(half: Path) -> None:
    state = state_path(partial_path(half))
    data = json.loads(state.read_text())
    state.write_text(json.dumps(data | {"about": {**ABOUT, "model": ["a" * 64, "b" * 64]}}))
    with pytest.raises(ConfigError, match=r"model a{18}, b{60}, now it is a{18}, c{60};"):
        write(half, resume=True, about={**ABOUT, "model": ["a" * 64, "c" * 64]})


def test_two_runs_do_not_write_over_each_other(tmp_path: Path) -> None:
    first = KeptOutput(tmp_path / "o.csv", ABOUT, force=False, resume=False)
    for resume, force in ((False, True), (True, False), (False, False)):
        with pytest.raises(ConfigError, match="is being written by another run"):
            KeptOutput(tmp_path / "o.csv", ABOUT, force=force, resume=resume)
    first.commit()


def test_what_cannot_be_kept_is_written_in_place() -> None:
    with open_writer(
        "/dev/null",
        COLUMNS,
        format="csv",
        output=KeptOutput("/dev/null", ABOUT, force=False, resume=False),
    ) as writer:
        writer.write([["C", "x"]])
    with pytest.raises(ConfigError, match="written in place"):
        KeptOutput("/dev/null", ABOUT, force=False, resume=True)


def test_a_name_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    name = f"{'o' * 251}.csv"
    with pytest.raises(Killed):
        write(tmp_path / name, until=30)
    write(tmp_path / name, resume=True)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def mark(number: int, n_bytes: int = 0, sha: str = "") -> Mark:
    return Mark(number, 0, n_bytes, sha, "", {})


@given(st.integers(1, 3000))
def test_few_marks_are_kept_and_none_is_far_from_the_next(n: int) -> None:
    marks: list[Mark] = []
    for number in range(1, n + 1):
        marks = thin_out([*marks, mark(number)])
    numbers = [m.number for m in marks]
    assert numbers[-1] == n
    assert len(numbers) <= 3 * n.bit_length()
    for back in range(n):
        assert any(back <= n - number <= 3 * back for number in numbers) or 3 * back >= n - 1


def test_a_changed_byte_spoils_the_marks_behind_it() -> None:
    import hashlib

    data = bytes(range(100))
    marks = [mark(i, n, hashlib.sha256(data[:n]).hexdigest()) for i, n in ((1, 20), (2, 60))]
    held, state = whole_marks(io.BytesIO(data), marks)
    assert (held, state.hexdigest()) == (marks, marks[1].output_sha256)
    for spoilt, left in ((30, 1), (10, 0), (70, 2)):
        other = bytearray(data)
        other[spoilt] = 255
        assert whole_marks(io.BytesIO(bytes(other)), marks)[0] == marks[:left]


def test_rows_are_hashed_alike_in_any_portions() -> None:
    def sha(*portions: list[Record]) -> str:
        rows = RowsHash()
        for portion in portions:
            rows.update(portion)
        return rows.hexdigest()

    assert sha(RECORDS) == sha(RECORDS[:7], RECORDS[7:])
    assert sha([Record(0, 1, ["a", "b"], None)]) != sha([Record(0, 1, ["ab", ""], None)])
    assert sha([Record(0, 1, ["\udc80"], None)]) != sha([Record(0, 1, ["\udc80"], "odd")])

"""molscore predict --resume: killed, stopped, without a disk, and gone on to the same bytes."""

import json
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import run_process, wait_for

from molscore.api import predict_table

N = 12_000
"""Rows."""


@pytest.fixture(scope="module")
def rows() -> list[bytes]:
    """The lines of a table whose cells hold line ends, quotes and characters of many bytes."""
    tails = ["O", "N", "C(=O)O", "c1ccccc1", "Cl", "[N+](=O)[O-]", "bad!"]
    header = "smiles,note\n"
    return [header.encode()] + [
        f'{"C" * (i % 9 + 1)}{tails[i % 7]},"é✓\n""{i}""\U0001f9ea {"x" * 20}"\n'.encode()
        for i in range(N)
    ]


@pytest.fixture(scope="module")
def table(rows: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "in.csv"
    path.write_bytes(b"".join(rows))
    return path


@pytest.fixture(scope="module")
def whole(
    table: Path, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The output of an uninterrupted run of one worker, by name."""
    folder = tmp_path_factory.mktemp("whole")

    def make(name: str) -> Path:
        path = folder / name
        if not path.exists():
            run_process("predict", table, "--model", model, "--output", path, "--workers", "1")
        return path

    return make


def marks(output: Path) -> list[dict]:
    state = output.with_name(f"{output.name}.partial.json")
    return json.loads(state.read_text())["marks"] if state.exists() else []


@pytest.fixture
def interrupt(start, model: Path, rows: list[bytes], tmp_path: Path):
    """Feed a run from a pipe that stalls, so that it is hit in the middle of its work."""

    def run(name: str, workers: str, signum: int) -> tuple[Path, int, str]:
        out = tmp_path / name
        process = start(
            *("predict", "-", "--model", model, "--output", out, "--workers", workers),
            stdin=subprocess.PIPE,
            cwd=tmp_path,
        )
        blocks = (rows[i : i + 500] for i in range(0, 9_500, 500))

        def far_enough() -> bool:
            # Not every chunk is noted at once, so more must follow.
            process.stdin.write(b"".join(next(blocks, ())))
            process.stdin.flush()
            time.sleep(0.2)
            return bool(marks(out)) and marks(out)[-1]["next_row"] > 3_000

        wait_for(far_enough)
        process.send_signal(signum)
        err = process.stderr.read().decode()
        code = process.wait(60)
        process.stdin.close()
        assert not out.exists()
        return out, code, err

    return run


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.tsv.gz"])
def test_killed_and_gone_on_with(
    interrupt, whole, model: Path, table: Path, name: str, workers: str
) -> None:
    out, code, err = interrupt(name, workers, signal.SIGKILL)
    assert (code, err) == (-signal.SIGKILL, "")
    # Half a row, cut inside a quoted field and a character of several bytes.
    with out.with_name(f"{name}.partial").open("ab") as partial:
        partial.write('CCO,"é✓\n""7""\U0001f9ea'.encode()[:-2])
    result = run_process(
        *("predict", table, "--model", model, "--output", out, "--resume", "--workers", workers)
    )
    assert result.code == 0
    first, *_, last = result.err.splitlines()
    assert first.startswith("going on at row ")
    assert last == f"{N} read, {N - N // 7} predicted, {N // 7} skipped"
    assert out.read_bytes() == whole(name).read_bytes()
    assert [p.name for p in out.parent.iterdir()] == [name]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(
    interrupt, whole, model: Path, rows: list[bytes], signum: signal.Signals
) -> None:
    """As by Ctrl-C or by a batch system at its time limit; the same stream is fed again."""
    out, code, err = interrupt("out.csv", "2", signum)
    assert code in {130, -signal.SIGTERM}
    assert err.startswith("out.csv.partial keeps ")
    assert err.splitlines()[0].endswith(" rows; the same command with --resume goes on")
    result = run_process(
        *("predict", "-", "--model", model, "--output", out, "--resume"), stdin=b"".join(rows)
    )
    assert result.code == 0
    assert out.read_bytes() == whole("out.csv").read_bytes()


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_a_full_disk(whole, model: Path, table: Path, tmp_path: Path, name: str) -> None:
    def limit() -> None:
        size = whole(name).stat().st_size * 2 // 3
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    whole(name)
    arguments = ("predict", table, "--model", model, "--output", name)
    result = run_process(*arguments, cwd=tmp_path, preexec_fn=limit)
    assert result.code == 1
    hint, error = result.err.splitlines()
    assert hint.startswith(f"{name}.partial keeps ")
    assert error == f"error: cannot write {name}: File too large"
    assert run_process(*arguments, cwd=tmp_path).code == 2  # what was done is not thrown away
    assert run_process(*arguments, "--resume", cwd=tmp_path).code == 0
    assert (tmp_path / name).read_bytes() == whole(name).read_bytes()


def test_strict_counts_the_rows_of_the_first_run_too(invoke, model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "in.smi", tmp_path / "o.csv"
    table.write_text("bad!\n" + "CCO\n" * 99)

    def stop(*_: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_table(table, model, out, progress=stop)
    result = invoke("predict", table, "--model", model, "--output", out, "--resume", "--strict")
    assert result.code == 3
    assert result.err.splitlines() == [
        "going on at row 65; 64 rows are done",
        "and 1 more rows that failed; see the status column",
        "100 read, 99 predicted, 1 skipped",
    ]


def test_nothing_to_do_and_nothing_to_go_on_with(invoke, model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "in.smi", tmp_path / "o.csv"
    table.write_text("CCO\nbad!\n")
    arguments = ("predict", table, "--model", model, "--output", out, "--resume")
    first = invoke(*arguments)
    assert first.code == 0
    assert "o.csv.partial: starting with the first row" in first.err
    again = invoke(*arguments)
    assert again.code == 0
    assert again.err.splitlines()[0].endswith("o.csv is finished; nothing is left to do")
    assert again.err.splitlines()[-1] == "2 read, 1 predicted, 1 skipped"
    assert invoke(*arguments, "--strict").code == 3
    table.write_text("CCN\nbad!\n")
    other = invoke(*arguments)
    assert other.code == 2
    assert "is not what this command writes: expected 'CCN," in other.err
    assert invoke("predict", table, "--model", model, "--resume").code == 2

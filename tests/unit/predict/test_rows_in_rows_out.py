"""The stream: same rows, same order, whatever computes them and whatever goes wrong."""

import csv
import dataclasses
import io
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from exported_bundle import exported
from handmade_bundle import bundle_bytes, expected

from molscore.bundle.reader import Bundle, load_bundle, parse_bundle
from molscore.data.records import Record, TableInfo, TableReader
from molscore.data.tables import open_table
from molscore.data.writers import open_writer
from molscore.errors import BundleError, ConfigError, MolscoreError
from molscore.predict import stream
from molscore.predict.chunks import RowRange
from molscore.predict.engine import SharingEngine
from molscore.predict.layout import output_layout
from molscore.predict.models import Models
from molscore.predict.stream import SERIAL_ROWS, Summary, predict_chunks, predict_stream
from molscore.predict.task import Task
from molscore.predict.worker import work
from molscore.processes import pool
from molscore.processes.worker import receive, send

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.molscore"
    path.write_bytes(bundle_bytes())
    return path


@pytest.fixture
def bundle(path: Path) -> Bundle:
    return load_bundle(path)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model whose last bits depend on what a molecule is computed with, and that shares."""
    path = tmp_path_factory.mktemp("real") / "m.molscore"
    path.write_bytes(exported(width=128))
    loaded = load_bundle(path)
    assert SharingEngine.pays(loaded)
    return loaded


class Lines:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, rows: Any) -> None:
        self.rows.extend(rows)


def table(smiles: list[str], problems: dict[int, str] | None = None) -> TableReader:
    records = (
        Record(i, i + 2, [f"id{i}", s], (problems or {}).get(i)) for i, s in enumerate(smiles)
    )
    return TableReader(
        name="t.csv",
        columns=["id", "smiles"],
        smiles_index=1,
        info=TableInfo(format="csv"),
        records=records,
        close=lambda: None,
    )


def run(bundle: Bundle, smiles: list[str], **options: Any) -> tuple[list[Any], Summary]:
    writer = Lines()
    summary = predict_stream(table(smiles), writer, bundle, **options)  # type: ignore[arg-type]
    return writer.rows, summary


def many(n: int) -> list[str]:
    """Different molecules, some of them bad."""
    good = ["C" * (i % 40 + 1) + "O" * (i % 2) for i in range(n)]
    return [("", "c1cccn1")[i % 2] if i % 97 == 0 else text for i, text in enumerate(good)]


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def test_rows_pass_through_and_ours_follow(bundle: Bundle) -> None:
    rows, summary = run(bundle, ["CCO", "xx", "", "O"], workers=1)
    assert [row[:2] for row in rows] == [
        ["id0", "CCO"], ["id1", "xx"], ["id2", ""], ["id3", "O"],
    ]  # fmt: skip
    assert rows[0][2] == pytest.approx(expected(list("CCO")) * 1.05)
    assert rows[0][4:] == ["ok", ""]
    assert rows[1][2:5] == [None, None, "invalid_smiles"]
    assert rows[2][2:] == [None, None, "empty", "no SMILES"]
    assert (summary.n_read, summary.n_ok, summary.n_failed) == (4, 2, 2)
    assert summary.counts == {"ok": 2, "invalid_smiles": 1, "empty": 1}
    assert [(f.row, f.line, f.smiles, f.status) for f in summary.failures] == [
        (1, 3, "xx", "invalid_smiles"),
        (2, 4, "", "empty"),
    ]
    assert len(rows[0]) == len(
        output_layout(["id", "smiles"], Models.open([bundle]).answer).columns
    )


def test_a_broken_record_keeps_its_row_and_is_not_predicted(bundle: Bundle) -> None:
    """Its SMILES may be a neighbour's: a value would be worse than none."""
    writer = Lines()
    reader = table(["CCO", "CCN"], {1: "ragged row: 3 fields where the table has 2 columns"})
    summary = predict_stream(reader, writer, bundle, workers=1)  # type: ignore[arg-type]
    assert writer.rows[1][:2] == ["id1", "CCN"]
    assert writer.rows[1][2:5] == [None, None, "malformed"]
    assert writer.rows[1][5].startswith("ragged row")
    assert summary.failures[0].reason.startswith("ragged row")


def test_an_empty_table_gives_no_rows(bundle: Bundle) -> None:
    rows, summary = run(bundle, [])
    assert rows == []
    assert summary.n_read == 0


def test_only_the_first_failures_are_kept_but_all_are_counted(bundle: Bundle) -> None:
    _, summary = run(bundle, [""] * 1000, workers=1)
    assert len(summary.failures) == stream.MAX_FAILURES
    assert summary.counts["empty"] == 1000


def test_progress_is_told_after_each_chunk(bundle: Bundle) -> None:
    told: list[tuple[int, int | None]] = []
    run(bundle, many(25), workers=1, chunk_rows=10, progress=lambda *said: told.append(said))
    assert told == [(10, None), (20, None), (25, None)]


def test_progress_of_a_file_has_an_end(bundle: Bundle, tmp_path: Path) -> None:
    """Estimated from bytes read, and of the rows wanted only; exact at the end."""
    source = tmp_path / "in.smi"
    source.write_text(f"C {'name' * 20}\n" * 3000)
    told: list[tuple[int, int | None]] = []
    for rows in (RowRange(), RowRange(100, 1000), RowRange(2900, 500)):
        with open_table(source) as reader:
            predict_stream(
                reader, Lines(), bundle, workers=1, rows=rows,  # type: ignore[arg-type]
                progress=lambda *said: told.append(said),
            )  # fmt: skip
    ends = [(done, total) for done, total in told if done == total]
    assert ends == [(3000, 3000), (1000, 1000), (100, 100)]
    assert all(total is not None and total >= done for done, total in told)


def test_progress_of_a_run_that_goes_on_begins_with_what_is_done(bundle: Bundle) -> None:
    told: list[tuple[int, int | None]] = []
    before = Summary(n_read=10, n_ok=10)
    run(
        bundle, many(25), workers=1, chunk_rows=10, summary=before,
        progress=lambda *said: told.append(said),
    )  # fmt: skip
    assert told[:2] == [(10, None), (20, None)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("skip", "limit"), [(0, 0), (0, 70), (63, 2), (700, 2300), (2999, None)])
def test_part_of_a_table_is_that_part_of_the_whole(
    real: Bundle, skip: int, limit: int | None, workers: int
) -> None:
    """Bit for bit, though the chunk at either end also holds rows that are not wanted."""
    smiles = many(3000)
    whole, _ = run(real, smiles, workers=1)
    part, summary = run(real, smiles, workers=workers, rows=RowRange(skip, limit))
    assert part == whole[skip : 3000 if limit is None else skip + limit]
    assert summary.n_read == len(part) == sum(summary.counts.values())
    assert all(skip <= f.row < skip + len(part) for f in summary.failures)
    assert all(f.line == f.row + 2 for f in summary.failures)


def test_rows_behind_the_end_are_no_rows(bundle: Bundle) -> None:
    rows, summary = run(bundle, many(30), rows=RowRange(30))
    assert (rows, summary.n_read) == ([], 0)
    rows, _ = run(bundle, many(30), rows=RowRange(29, 10))
    assert len(rows) == 1


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_change_nothing(bundle: Bundle, workers: int) -> None:
    smiles = many(3000)
    serial, counted = run(bundle, smiles, workers=1)
    parallel, also = run(bundle, smiles, workers=workers)
    assert parallel == serial
    assert also == counted
    assert children() == []


@pytest.mark.parametrize("n", [1, SERIAL_ROWS - 1, SERIAL_ROWS])
def test_a_short_table_starts_no_worker(
    bundle: Bundle, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "WorkerPool", None)
    rows, _ = run(bundle, ["C"] * n, workers=8)
    assert len(rows) == n


def test_the_first_chunk_is_answered_before_more_is_read(bundle: Bundle) -> None:
    read: list[int] = []

    def chunks() -> Iterator[list[str]]:
        for i in range(3):
            read.append(i)
            yield ["C"] * 10

    results = predict_chunks(chunks(), bundle, workers=2)
    assert len(next(results)) == 10
    assert read == [0]
    results.close()


def test_reading_ahead_is_bounded(bundle: Bundle) -> None:
    read = 0

    def chunks() -> Iterator[list[str]]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield ["C"] * 512

    results = predict_chunks(chunks(), bundle, workers=2)
    for taken in range(1, 20):
        next(results)
        # Beyond those taken: the look-ahead that decides, or two chunks per worker.
        assert read <= taken + 5
    results.close()
    assert children() == []


def test_workers_end_when_the_writer_fails(bundle: Bundle) -> None:
    class Full(Lines):
        def write(self, rows: Any) -> None:
            super().write(rows)
            if len(self.rows) > 2 * SERIAL_ROWS:
                assert len(children()) == 2
                raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        predict_stream(table(many(20_000)), Full(), bundle, workers=2)  # type: ignore[arg-type]
    assert children() == []


def test_a_killed_worker_is_an_error_within_seconds(bundle: Bundle) -> None:
    killed = 0.0

    def kill(done: int, total: int | None) -> None:
        nonlocal killed
        if done > 2 * SERIAL_ROWS and not killed:
            killed = time.monotonic()
            os.kill(children()[0].pid, signal.SIGKILL)

    with pytest.raises(MolscoreError, match=r"worker process \(pid \d+\) was killed by SIGKILL"):
        run(bundle, many(60_000), workers=2, progress=kill)
    assert time.monotonic() - killed < 5
    assert children() == []


def test_a_bundle_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.molscore"
    path.write_bytes(bundle_bytes())
    bundle = load_bundle(path)
    path.write_bytes(bundle_bytes(n_experts=3))
    with pytest.raises(BundleError, match="was replaced while it was in use"):
        run(bundle, many(4000), workers=2)


def test_a_bundle_from_memory_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WorkerPool", None)
    rows, _ = run(parse_bundle(bundle_bytes(), where="memory"), ["C"] * 4000, workers=4)
    assert len(rows) == 4000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": -1}, "workers must be 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"engine": "abacus"}, "unknown engine 'abacus'"),
    ],
)
def test_options_are_checked_before_anything_is_read(
    bundle: Bundle, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        run(bundle, ["C"], **options)


SCRIPT = """
import sys, time
from molscore.bundle.reader import load_bundle
from molscore.predict.stream import predict_chunks
n = 0
for result in predict_chunks((["C" * (i % 60 + 1)] * 512 for i in range({chunks})),
                             load_bundle({path!r}), workers=2):
    n += len(result)
    print(n, flush=True)
"""


def start(path: Path, chunks: int = 100_000, **options: Any) -> "subprocess.Popen[str]":
    code = SCRIPT.format(path=str(path), chunks=chunks)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for_workers(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) > 4 * 512:
            break
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    return workers


def all_end(workers: list[psutil.Process], seconds: float) -> bool:
    return not psutil.wait_procs(workers, timeout=seconds)[1]


def test_workers_end_with_a_killed_parent(path: Path) -> None:
    process = start(path)
    workers = wait_for_workers(process)
    process.kill()
    process.communicate()
    assert all_end(workers, 5)


def test_an_interrupt_ends_everything_at_once(path: Path) -> None:
    """Ctrl-C reaches the whole process group; only the parent may speak."""
    process = start(path, start_new_session=True)
    workers = wait_for_workers(process)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - began < 3
    assert all_end(workers, 1)
    assert err.count("KeyboardInterrupt") == 1


def test_a_script_without_a_main_guard_works(path: Path, tmp_path: Path) -> None:
    """Workers do not run the caller's main module again."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(path=str(path), chunks=8))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(512 * i) for i in range(1, 9)]


def test_a_module_in_the_working_directory_does_not_stand_in(path: Path, tmp_path: Path) -> None:
    for name in ("json", "numpy", "pickle", "molscore"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('wrong module')")
    script = tmp_path / "sub" / "script.py"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(path=str(path), chunks=8))
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stderr, done.stdout.splitlines()[-1:]) == ("", ["4096"])


@pytest.mark.slow
def test_memory_stays_flat(path: Path) -> None:
    process = start(path)
    workers = wait_for_workers(process)
    watched = [psutil.Process(process.pid), *workers]
    assert process.stdout is not None
    sizes = []
    for line in process.stdout:
        if int(line) % (512 * 50) == 0:
            sizes.append([p.memory_info().rss / 2**20 for p in watched])
        if len(sizes) == 8:
            break
    process.kill()
    process.communicate()
    for one in zip(*sizes, strict=True):
        assert max(one[4:]) < max(one[:4]) + 5


def test_output_is_readable_csv(bundle: Bundle, tmp_path: Path) -> None:
    """With the real reader and writer, twice over: our own output is an input."""
    source = tmp_path / "in.csv"
    source.write_text('smiles,y,status\nCCO,1.23,"a, b"\nC[N+](C)(C)C,,x\nbad,3,y\n')
    target = tmp_path / "out.csv"
    texts = []
    for _ in range(2):
        with open_table(source) as reader:
            columns = output_layout(reader.columns, Models.open([bundle]).answer).columns
            with open_writer(target, columns, force=True) as writer:
                predict_stream(reader, writer, bundle)
        texts.append(target.read_text())
        source.write_text(texts[-1])
    assert texts[0] == texts[1]
    rows = list(csv.DictReader(io.StringIO(texts[0])))
    assert [row["y"] for row in rows] == ["1.23", "", "3"]
    assert [row["status"] for row in rows] == ["a, b", "x", "y"]
    assert [row["status_2"] for row in rows] == ["ok", "ok", "invalid_smiles"]
    assert rows[2]["pred_logS"] == ""
    assert float(rows[0]["pred_logS"]) == pytest.approx(expected(list("CCO")) * 1.05, rel=1e-5)


def test_messages_come_through_exactly() -> None:
    numbers = [0.1, 1e-300, float("inf"), 2.0**0.5]
    message = {"text": "\udc80 é\n\0", "numbers": numbers, "none": None}
    pipe = io.BytesIO()
    send(pipe, message)
    send(pipe, {"nan": float("nan")})
    pipe.seek(0)
    assert receive(pipe) == message
    assert math.isnan(receive(pipe)["nan"])
    with pytest.raises(EOFError):
        receive(pipe)
    with pytest.raises(EOFError):
        receive(io.BytesIO(pipe.getvalue()[:20]))


def test_a_worker_that_talks_nonsense_is_an_error(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_START", "import os; os.write(1, b'x' * 100); os._exit(0)")
    with pytest.raises(MolscoreError, match=r"worker process \(pid \d+\) ended with exit code 0"):
        run(bundle, many(4000), workers=2)
    assert children() == []


def test_few_tasks_start_few_workers(bundle: Bundle) -> None:
    work_ = work(Models.open([bundle]), 16)
    with pool.WorkerPool(work_, 8) as workers:
        results = list(workers.run(Task(i, ["CCO"]) for i in range(2)))
        assert [len(result) for result in results] == [1, 1]
        assert len(workers._processes) <= 2


def test_an_empty_chunk_keeps_its_shape_in_a_worker(bundle: Bundle) -> None:
    work_ = work(Models.open([bundle]), 16)
    with pool.WorkerPool(work_, 1) as workers:
        (result,) = workers.run(iter([Task(0, [])]))
    assert result.values.shape == result.upper.shape == (0, bundle.manifest.n_targets)


def test_a_fault_of_our_own_is_told_as_it_is(bundle: Bundle) -> None:
    work_ = dataclasses.replace(work(Models.open([bundle]), 16), from_message=lambda m: m["none"])
    with pool.WorkerPool(work_, 1) as workers, pytest.raises(KeyError, match="none"):
        list(workers.run(iter([Task(0, ["C"])])))


def test_a_thread_that_cannot_start_is_told(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool.threading.Thread, "start", refuse)
    with (
        pytest.raises(MolscoreError, match="cannot start a worker process: can't start"),
        pool.WorkerPool(work(Models.open([bundle]), 16), 2) as workers,
    ):
        list(workers.run(iter([Task(0, ["C"])])))
    assert all(process.poll() is not None for process in workers._processes)


def test_rows_that_come_slowly_start_no_worker(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "SERIAL_ROWS", 2)
    monkeypatch.setattr(stream, "WorkerPool", None)  # which nobody may call

    def tasks() -> Iterator[Task]:
        for i in range(4):
            time.sleep(0.3)
            yield Task(i, ["CCO"] * 3)

    models = Models.open([bundle])
    results = list(stream.predict_tasks(tasks(), models, 2, 16, is_live=True))
    assert len(results) == 4

"""Rows in, rows out: same order, same count, constant memory."""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from molscore.bundle.reader import Bundle
from molscore.cpus import worker_count
from molscore.data.records import Record, TableReader
from molscore.data.writers import TableWriter
from molscore.errors import ConfigError
from molscore.predict.chunks import ALL_ROWS, CHUNK_ROWS, RowRange, cut_records
from molscore.predict.core import BATCH_SIZE, ChunkResult
from molscore.predict.layout import answers, output_layout
from molscore.predict.models import Models
from molscore.predict.task import Task
from molscore.predict.worker import work
from molscore.processes.pool import WorkerPool

SERIAL_ROWS: Final = 2048
"""Up to this many rows no worker is started: starting one costs about as much."""

MAX_FAILURES: Final = 20

Progress = Callable[[int, int | None], None]
"""Told the rows done, and how many there are: an estimate, None where nothing is known."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A row without a prediction: where it stands and why."""

    row: int
    line: int
    smiles: str
    status: str
    reason: str


@dataclass(slots=True)
class Summary:
    """What a run did.

    Attributes:
        n_read: rows.
        n_ok: rows with a prediction.
        counts: rows by status.
        failures: the first `MAX_FAILURES` rows without one.
    """

    n_read: int = 0
    n_ok: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def n_failed(self) -> int:
        """Rows without a prediction."""
        return self.n_read - self.n_ok


def predict_stream(
    reader: TableReader,
    writer: TableWriter,
    model: Bundle | Models,
    *,
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    batch_size: int = BATCH_SIZE,
    rows: RowRange = ALL_ROWS,
    summary: Summary | None = None,
    written: Callable[[list[Record], Summary], None] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Predict a table.

    Args:
        reader: the table, from its first row or any chunk border on.
        writer: opened with the columns of `output_layout(reader.columns, models.answer)`.
        model: one, or several in one pass.
        engine: `onnx` or `torch`, of a `Bundle`; `Models` are open already.
        device: of the torch engine.
        workers: processes; 0 takes one per available CPU, 1 stays in this process. The torch
            engine always stays in this process.
        chunk_rows: rows per chunk; a chunk border is a multiple of it.
        batch_size: most molecules per run.
        rows: those to predict; the others are neither written nor counted.
        summary: of the rows that an earlier run has written, to be added to.
        written: called with the records of each chunk once its rows are out.
        progress: told how far it is, after each chunk; also before the first, if an earlier
            run has written rows.

    Raises:
        ConfigError: on options that cannot be used.
        BundleError: when the model cannot be run.
        MolscoreError: when a worker dies.
    """
    models = _opened(model, engine, device)
    answer = models.answer
    layout = output_layout(reader.columns, answer)
    summary = summary or Summary()
    waiting: deque[list[Record]] = deque()
    n_pulled = 0

    def tasks() -> Iterator[Task]:
        for chunk in cut_records(iter(reader), rows, chunk_rows):
            nonlocal n_pulled
            n_pulled = chunk[-1].row + 1
            waiting.append(chunk)
            smiles = ["" if r.problem else r.fields[reader.smiles_index] for r in chunk]
            yield Task(chunk[0].row, smiles)

    if progress is not None and summary.n_read:
        progress(summary.n_read, None)
    results = predict_tasks(tasks(), models, workers, batch_size, is_live=reader.is_live)
    with closing(results):  # whatever happens to the writer, the workers end now
        for whole in results:
            chunk = waiting.popleft()
            wanted = rows.part(chunk[0].row, len(chunk))
            records, result = chunk[wanted], whole.part(wanted)
            for index, record in enumerate(records):
                if record.problem:
                    result.status[index], result.error[index] = "malformed", record.problem
            ours = answers(result, answer)
            writer.write(
                [
                    [*(record.fields[i] for i in layout.kept), *cells]
                    for record, cells in zip(records, ours, strict=True)
                ]
            )
            _count(summary, records, reader.smiles_index, result)
            if written is not None:
                written(records, summary)
            if progress is not None:
                progress(summary.n_read, rows.count(reader.estimate_rows(n_pulled)))
    return summary


def predict_chunks(
    chunks: Iterable[list[str]],
    model: Bundle | Models,
    *,
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 0,
    batch_size: int = BATCH_SIZE,
) -> Generator[ChunkResult, None, None]:
    """Yield one result per chunk of SMILES, in order; see `predict_stream` for the arguments."""
    return predict_tasks(_numbered(chunks), _opened(model, engine, device), workers, batch_size)


def predict_tasks(
    tasks: Iterator[Task], models: Models, workers: int, batch_size: int, *, is_live: bool = False
) -> Generator[ChunkResult, None, None]:
    """Yield one result per chunk, in order; see `predict_stream` for the arguments.

    The first chunk is predicted in this process before more is read, so that a slow or short
    input is answered at once. Workers are started if the chunks hold more than `SERIAL_ROWS`:
    so many are read ahead to know. Where rows may come slowly (`is_live`), they are predicted
    here, and no worker is started while they do.
    """
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, got {batch_size}")
    n_workers = worker_count(workers)
    if not models.can_be_sent:
        n_workers = 1
    n_rows = 0
    asked = time.monotonic()
    for task in tasks:
        came = time.monotonic()
        yield models.predict(task, batch_size)
        n_rows += len(task.smiles)
        done = time.monotonic()
        # Rows that come more slowly than one process answers them need no other.
        if not is_live or (n_rows > SERIAL_ROWS and came - asked < done - came):
            break
        asked = done
    if n_workers > 1:
        few = SERIAL_ROWS - n_rows
        ahead = _read_ahead(tasks, few)
        if ahead and _n_rows(ahead) > few:
            with WorkerPool(work(models, batch_size), n_workers) as pool:
                yield from pool.run(chain(ahead, tasks))
            return
        tasks = chain(ahead, tasks)
    yield from _serial(tasks, models, batch_size)


def _opened(model: Bundle | Models, engine: str, device: str) -> Models:
    return model if isinstance(model, Models) else Models.open([model], engine, device)


def _numbered(chunks: Iterable[list[str]]) -> Iterator[Task]:
    row = 0
    for smiles in chunks:
        yield Task(row, smiles)
        row += len(smiles)


def _n_rows(tasks: Iterable[Task]) -> int:
    return sum(len(task.smiles) for task in tasks)


def _read_ahead(tasks: Iterator[Task], n_rows: int) -> list[Task]:
    """Take tasks until they hold more than `n_rows` rows, or there are no more."""
    ahead: list[Task] = []
    for task in tasks:
        ahead.append(task)
        n_rows -= len(task.smiles)
        if n_rows < 0:
            break
    return ahead


def _serial(tasks: Iterable[Task], models: Models, batch_size: int) -> Iterator[ChunkResult]:
    for task in tasks:
        yield models.predict(task, batch_size)


def _count(summary: Summary, records: list[Record], smiles_index: int, result: ChunkResult) -> None:
    summary.n_read += len(records)
    summary.counts.update(result.status)
    summary.n_ok = summary.counts["ok"]
    for record, status, reason in zip(records, result.status, result.error, strict=True):
        if len(summary.failures) >= MAX_FAILURES:
            return
        if status != "ok":
            summary.failures.append(
                Failure(record.row, record.line, record.fields[smiles_index], status, reason)
            )

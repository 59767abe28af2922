"""Predict a table from a file or stdin to a file or stdout."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from molscore.api.finished import Finished, is_finished
from molscore.api.resuming import can_be_kept, describe_run, open_kept
from molscore.bundle.reader import load_bundle
from molscore.data.beside import files_beside
from molscore.data.names import free_names
from molscore.data.outputs import refuse_inputs
from molscore.data.records import Record, TableOptions, TableReader
from molscore.data.tables import TableWriter, open_table, open_writer
from molscore.data.writers import Cell, OutputFormat, resolve_format
from molscore.errors import ConfigError
from molscore.predict.chunks import RowRange
from molscore.predict.core import BATCH_SIZE
from molscore.predict.layout import OutputLayout, output_layout
from molscore.predict.models import Models, stem
from molscore.predict.stream import Progress, Summary, predict_stream
from molscore.trust.options import TrustOptions

LOGGER: Final = logging.getLogger(__name__)
_DEFAULT: Final = TableOptions()
_TRUST: Final = TrustOptions()
_JSONL_ENDINGS: Final = (".jsonl", ".ndjson")


def predict_table(
    source: str | Path,
    model: str | Path | Sequence[str | Path],
    output: str | Path = "-",
    *,
    table: TableOptions = _DEFAULT,
    trust: TrustOptions = _TRUST,
    output_format: OutputFormat = "auto",
    model_info: bool = False,
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 0,
    batch_size: int = BATCH_SIZE,
    skip: int = 0,
    limit: int | None = None,
    force: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> Summary:
    """Predict the rows of a table; they are neither lost, added nor moved.

    A row's prediction is the same bytes whichever part of the table is asked for, on one type of
    processor.

    Args:
        source: a table, or "-" for stdin.
        model: path of a `.molscore` file, or of several to predict with in one pass. See
            `molscore.predict.models.Models` for the names of their targets.
        output: a file, whose suffix chooses the format, or "-" for stdout (csv).
        table: how to read `source`.
        trust: what to say beside a prediction, where the model carries what that takes.
        output_format: overrides the suffix.
        model_info: add the columns `model` and `model_sha256`. JSON lines always carry them.
        engine: `onnx` or `torch`.
        device: of the torch engine.
        workers: processes; 0 takes one per available CPU. The result does not depend on it.
        batch_size: most molecules in one pass of the model.
        skip: rows left out at the beginning.
        limit: most rows to predict after those; None takes all.
        force: replace an existing output file.
        resume: go on with the output that a run left half-written (csv, tsv, jsonl).
        progress: told the number of rows done and an estimate of all, None where there is none.

    Returns:
        Counts, and the first failed rows.

    Raises:
        BundleError: when the model cannot be used.
        InputError: when the table cannot be read.
        ConfigError: on options that cannot be used, or an output file in the way.
        MolscoreError: when a worker dies or the output cannot be written.
    """
    rows = RowRange(skip, limit)
    paths = [model] if isinstance(model, str | Path) else list(model)
    if not paths:
        raise ConfigError("no model is given")
    refuse_inputs(output, table=source, model=paths)
    keeps = can_be_kept(output, output_format, resume=resume)
    if keeps:
        refuse_inputs(output, also=files_beside(output), table=source, model=paths)
    # Opened first: what is refused is so before a header is written.
    models = Models.open([load_bundle(path) for path in paths], engine, device, trust)
    with open_table(source, table) as reader:
        log_table(reader)
        layout = output_layout(reader.columns, models.answer)
        _log_layout(layout)
        appended: list[str] = []
        if model_info or is_jsonl(output, output_format):
            appended = free_names(layout.columns, ("model", "model_sha256"))
        columns = [*layout.columns, *appended]

        def predict(
            reader: TableReader, writer: TableWriter, rows: RowRange, **more: Any
        ) -> Summary:
            return predict_stream(
                reader,
                _Appending(writer, _model_cells(models)) if appended else writer,
                models,
                workers=workers,
                batch_size=batch_size,
                rows=rows,
                **more,
            )

        if resume and is_finished(output, force=force):
            form, _ = resolve_format(output, output_format)
            status = len(layout.columns) - 2
            finished = Finished(Path(output), form, columns, layout.kept, status)
            return finished.compare(reader, rows, predict)
        kept, before = None, Summary()
        if keeps:
            about = describe_run(
                reader,
                columns,
                rows,
                form=resolve_format(output, output_format),
                model=[bundle.sha256 for bundle in models.bundles],
                engine=engine,
                device=device,
                batch_size=batch_size,
                **trust.to_dict(),
            )
            kept, before = open_kept(output, about, reader, rows, force=force, resume=resume)
        with open_writer(
            output,
            columns,
            format=output_format,
            force=force,
            number_columns=layout.numbers,
            output=kept,
        ) as writer:

            def note(records: list[Record], summary: Summary) -> None:
                if kept is not None and records:
                    kept.advance(records, summary.counts, whole=writer.whole)

            summary = predict(reader, writer, rows, summary=before, written=note, progress=progress)
    if skip and limit != 0 and not summary.n_read:
        LOGGER.warning("the table has no row behind the %d that are skipped", skip)
    return summary


def log_table(reader: TableReader) -> None:
    """Log how a table is read: guesses worth knowing, and the rest at debug level."""
    info = reader.info
    for note in info.notes:
        LOGGER.info("%s: %s", reader.name, note)
    facts = {
        "format": info.format,
        "separator": repr(info.separator) if info.separator else None,
        "encoding": info.encoding,
        "compression": info.compression,
        "header": "yes" if info.header else "no",
    }
    LOGGER.debug(
        "%s: %s; SMILES in column %s (found by %s)",
        reader.name,
        ", ".join(f"{key} {value}" for key, value in facts.items() if value),
        reader.columns[reader.smiles_index],
        info.smiles_found_by,
    )


def is_jsonl(output: str | Path, output_format: OutputFormat) -> bool:
    """Return whether results go out as JSON lines."""
    if output_format != "auto":
        return output_format == "jsonl"
    return str(output).lower().removesuffix(".gz").endswith(_JSONL_ENDINGS)


class _Appending(TableWriter):
    """A writer that adds the same cells to every row; opening and closing stay its owner's."""

    def __init__(self, writer: TableWriter, cells: Sequence[Cell]) -> None:
        self._writer = writer
        self._cells = cells

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write rows with the cells behind them."""
        self._writer.write([[*row, *self._cells] for row in rows])


def _model_cells(models: Models) -> list[Cell]:
    bundles = models.bundles
    # Of several, the names of their files, as in the names of the columns.
    names = [bundle.manifest.name if len(bundles) == 1 else stem(bundle) for bundle in bundles]
    return [";".join(names), ";".join(bundle.sha256 for bundle in bundles)]


def _log_layout(layout: OutputLayout) -> None:
    if layout.replaced:
        LOGGER.info("columns of an earlier prediction are replaced: %s", ", ".join(layout.replaced))
    for ours, used in layout.renamed.items():
        LOGGER.info("there is a column %r already; ours is called %r", ours, used)

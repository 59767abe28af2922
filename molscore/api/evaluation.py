"""How good a model is on a table of measured values, and how much of it the model has seen."""

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.api.comparison import (
    Predictions,
    compare_domain,
    compare_intervals,
    compare_reliability,
    compare_values,
)
from molscore.api.options import build_configs
from molscore.bundle.reader import Bundle, load_bundle
from molscore.bundle.structures import KnownStructures
from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.names import free_names
from molscore.data.outputs import refuse_inputs
from molscore.data.records import TableOptions
from molscore.data.targets import LabelledTable, Target, read_labelled
from molscore.data.writers import Cell, OutputFormat, TableWriter, open_writer
from molscore.errors import ConfigError
from molscore.predict.chunks import cut
from molscore.predict.core import ChunkResult
from molscore.predict.layout import Answer, answers, output_layout
from molscore.predict.models import Models
from molscore.predict.stream import MAX_FAILURES, Failure, Summary, predict_chunks
from molscore.stats.metrics import Metrics
from molscore.trust.options import TrustOptions

if TYPE_CHECKING:
    import pandas as pd

LOGGER: Final = logging.getLogger(__name__)

IN_TRAINING: Final = "in_training"
"""Column of the per-row output: whether the model was trained on that structure."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        model: name of the model.
        model_sha256: of its file.
        table: name of the table.
        summary: rows read, rows with a prediction, the first ones without.
        n_seen: rows with a prediction whose structure the model was trained on.
        metrics: target name -> `all`, `seen` and `unseen` -> metric -> value. Values are in the
            unit the model learns (the transformed one, if there is a transform); None where a
            metric is undefined.
        transforms: target name -> the transform it is learned under.
        intervals: target name -> `all`, `seen` and `unseen` -> what
            `molscore.stats.conformal.describe_intervals` says; of targets with intervals.
        domain: target name -> `inside` and `outside` -> metrics, of unseen structures; where the
            model can tell.
        reliability: target name -> what became of predictions of like probability, see
            `molscore.stats.reliability`, of unseen structures; of classes.
        level: the share of values that intervals are to hold.
    """

    model: str
    model_sha256: str
    table: str
    summary: Summary
    n_seen: int
    metrics: dict[str, dict[str, Metrics]]
    transforms: dict[str, str]
    intervals: dict[str, dict[str, dict[str, Any]]]
    domain: dict[str, dict[str, Metrics]]
    reliability: dict[str, list[dict[str, Any]]]
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON-ready built-in types."""
        return {
            "model": self.model,
            "model_sha256": self.model_sha256,
            "table": self.table,
            "rows": self.summary.n_read,
            "predicted": self.summary.n_ok,
            "seen_in_training": self.n_seen,
            "metrics": self.metrics,
            "transforms": self.transforms,
            "intervals": self.intervals,
            "interval_level": self.level,
            "domain": self.domain,
            "reliability": self.reliability,
        }


def evaluate(
    model: str | Path,
    table: "str | Path | pd.DataFrame",
    *,
    target: str | Sequence[str] | None = None,
    output: str | Path | None = None,
    output_format: OutputFormat = "auto",
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 0,
    force: bool = False,
    interval: float = TrustOptions.interval,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Compare a model with measured values.

    Args:
        model: path of a `.molscore` file.
        table: a file, "-" for stdin, or a DataFrame, with the measured values.
        target: target or targets of the model to compare; all when not given. For a model of
            one target, the column that holds its measured values, whatever it is called.
        output: file for predictions row by row; none when not given.
        output_format: overrides the suffix of `output`.
        engine: `onnx` or `torch`.
        device: of the torch engine.
        workers: processes; 0 takes one per available CPU.
        force: replace an existing output file.
        interval: the share of measured values that intervals are to hold; 0 for none.
        progress: told the number of rows done.
        **options: fields of `TableOptions`, such as `smiles_column`.

    Raises:
        BundleError: when the model cannot be used.
        InputError: when the table cannot be read or holds no measured value.
        ConfigError: on options that cannot be used, or an output file in the way.
    """
    refuse_inputs(output, table=table, model=model)
    (how,) = build_configs(options, TableOptions)
    bundle = load_bundle(model)
    wanted = [target] if isinstance(target, str) else target
    chosen = _choose(bundle, wanted)
    labelled = read_labelled(
        table,
        how,
        targets=[compared for _, compared in chosen],
        flag=_flag(bundle, wanted),
    )
    for note in labelled.notes:
        LOGGER.info("%s: %s", labelled.name, note)
    for item in labelled.rejected:
        if item.column:
            LOGGER.warning(
                "line %d, column %s: %s: %s", item.line, item.column, item.text, item.reason
            )
    models = Models.open([bundle], engine, device, TrustOptions(interval=interval))
    with _row_writer(labelled, models.answer, output, output_format, force) as writer:
        rows = _predict(labelled, models, workers, progress)
        if writer is not None:
            writer.write(_output_rows(labelled, rows))
    columns = [
        (t, compared, labelled.values[:, column]) for column, (t, compared) in enumerate(chosen)
    ]
    names = {t: bundle.manifest.targets[t].name for t, _, _ in columns}
    inside = rows.inside()
    return Evaluation(
        model=bundle.manifest.name,
        model_sha256=bundle.sha256,
        table=labelled.name,
        summary=_summarise(labelled, rows),
        n_seen=int((rows.ok & rows.in_training).sum()),
        metrics={names[t]: compare_values(rows, t, compared, y) for t, compared, y in columns},
        transforms={names[t]: compared.transform for t, compared, _ in columns},
        intervals={
            names[t]: compare_intervals(rows, t, compared, y)
            for t, compared, y in columns
            if rows.answer.intervals[t]
        },
        domain={
            names[t]: compare_domain(rows, t, compared, y, inside)
            for t, compared, y in columns
            if inside is not None
        },
        reliability={
            names[t]: compare_reliability(rows, t, y)
            for t, compared, y in columns
            if compared.kind == "classification"
        },
        level=interval,
    )


def _choose(bundle: Bundle, wanted: Sequence[str] | None) -> list[tuple[int, Target]]:
    """Return the targets to compare: index in the model, and the target as the table names it."""
    targets = bundle.manifest.targets
    if not wanted:
        return list(enumerate(targets))
    if len(targets) == 1 and len(wanted) == 1:
        return [(0, dataclasses.replace(targets[0], name=wanted[0]))]
    names = [target.name for target in targets]
    for name in wanted:
        if name not in names:
            raise ConfigError(
                f"--target {name!r} is not a target of {bundle.where}; it has {', '.join(names)}"
            )
    return [(names.index(name), targets[names.index(name)]) for name in wanted]


def _flag(bundle: Bundle, wanted: Sequence[str] | None) -> str:
    """Return what names the columns of measured values, for messages."""
    if wanted:
        return "--target"
    other = " (--target COLUMN names another column)" * (len(bundle.manifest.targets) == 1)
    return f"the model's target{other}"


def _predict(
    table: LabelledTable,
    models: Models,
    workers: int,
    progress: Callable[[int], None] | None,
) -> Predictions:
    results = []
    done = 0
    for result in predict_chunks(cut(iter(table.smiles)), models, workers=workers):
        results.append(result)
        done += len(result)
        if progress is not None:
            progress(done)
    whole = ChunkResult.concatenate(results)
    for item in table.rejected:
        if not item.column:  # the record itself is broken, so its SMILES was never looked at
            whole.status[item.row], whole.error[item.row] = "malformed", item.reason
    return Predictions(whole, models.answer, _in_training(table.smiles, models.bundles[0]))


def _in_training(smiles: Sequence[str], bundle: Bundle) -> NDArray[np.bool_]:
    """Return for each row [n] whether the model was trained on its structure."""
    policy: ChemPolicy = bundle.manifest.policy
    found = np.zeros(len(smiles), dtype=np.bool_)
    molecules = [
        m for i, s in enumerate(smiles) if isinstance(m := parse_smiles(s, policy, i), Molecule)
    ]
    structures = KnownStructures.from_arrays(bundle.arrays)
    if structures is None:
        LOGGER.warning("%s does not say which structures it was trained on", bundle.where)
    elif molecules:
        found[[m.row for m in molecules]] = structures.seen([structure_key(m) for m in molecules])
    return found


def _summarise(table: LabelledTable, rows: Predictions) -> Summary:
    status, error = rows.result.status, rows.result.error
    summary = Summary(n_read=len(table), counts=Counter(status))
    summary.n_ok = summary.counts["ok"]
    bad = [i for i, one in enumerate(status) if one != "ok"]
    summary.failures = [
        Failure(i, table.lines[i], table.smiles[i], status[i], error[i]) for i in bad[:MAX_FAILURES]
    ]
    return summary


def _row_writer(
    table: LabelledTable,
    answer: Answer,
    output: str | Path | None,
    output_format: OutputFormat,
    force: bool,
) -> AbstractContextManager[TableWriter | None]:
    """Open the per-row output before anything is computed, so that a file in the way is told."""
    if output is None:
        return nullcontext()
    layout = output_layout(table.columns, answer)
    return open_writer(
        output,
        [*layout.columns, *free_names(layout.columns, [IN_TRAINING])],
        format=output_format,
        force=force,
        number_columns=layout.numbers,
    )


def _output_rows(table: LabelledTable, rows: Predictions) -> list[list[Cell]]:
    kept = output_layout(table.columns, rows.answer).kept
    cells = list(table.extra.values())
    return [
        [*(cells[c][i] for c in kept), *ours, "yes" if seen else "no"]
        for i, (ours, seen) in enumerate(
            zip(answers(rows.result, rows.answer), rows.in_training, strict=True)
        )
    ]

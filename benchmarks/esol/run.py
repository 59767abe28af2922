"""Train the cells of the benchmark and keep what each gave; stop and start as you like.

    python benchmarks/esol/run.py --esol esol.csv --folds folds.csv
    python benchmarks/esol/run.py --esol esol.csv --folds folds.csv --tables default dt --seeds 1

Each finished cell is one line of `cells.csv` and one of `curves.csv`; a cell that stands there
is not trained again. Cells train one to a process and thread. Nothing here picks a model: the
held-out error is looked at every other epoch for the convergence table and not acted upon.
"""

import argparse
import csv
import dataclasses
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from cells import FOLDS, TABLES, Cell, label

from molscore.bundle.summary import sigmoid
from molscore.chem.policy import ChemPolicy
from molscore.cpus import available_cpus
from molscore.data.splits import read_folds_file
from molscore.data.targets import read_labelled
from molscore.stats.metrics import Metrics, classification_metrics, regression_metrics
from molscore.train.config import TrainConfig, settings
from molscore.train.data import TrainingData
from molscore.train.expert import ExpertTrainer
from molscore.train.prepare import prepare
from molscore.train.trees import train_trees

HERE: Final = Path(__file__).resolve().parent
RESULTS: Final = HERE / "cells.csv"
CURVES: Final = HERE / "curves.csv"
LOOK_EVERY: Final = 2
"""Epochs between two looks at the held-out error."""


@dataclass(frozen=True)
class Result:
    """What one cell gave.

    Attributes:
        rmse: on the held-out fold, in the unit of the target; None for a class.
        mae: likewise.
        roc_auc: on the held-out fold; None for a number.
        parameters: trained numbers of the model.
        seconds: of the processor, spent in training alone: without start-up and without looking
            at the held-out error.
    """

    dataset: str
    model: str
    seed: int
    fold: int
    rmse: float | None
    mae: float | None
    roc_auc: float | None
    parameters: int
    seconds: float


def prepare_dataset(name: str, table: Path, folds_file: Path | None) -> None:
    """Featurise a data set, descriptors included, and keep it for the workers.

    Args:
        name: of the data set.
        table: with SMILES and one target.
        folds_file: the fold of every row (columns row, fold); random folds without.
    """
    if cached(name).exists():
        return
    labelled = read_labelled(table)
    folds = None if folds_file is None else read_folds_file(folds_file, len(labelled))
    prepared = prepare(
        labelled,
        policy=ChemPolicy(),
        split="random" if folds is None else "file",
        n_folds=FOLDS,
        seed=0,
        descriptors=True,
        workers=0,
        folds=folds,
    )
    cached(name).parent.mkdir(exist_ok=True)
    prepared.data.save(cached(name))


def cached(name: str) -> Path:
    """Return where a featurised data set is kept."""
    return HERE / ".cache" / f"{name}.safetensors"


def start_worker() -> None:
    """Set a worker up as training itself is: one thread, deterministic."""
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")


def load(cell: Cell) -> TrainingData:
    """Return the data set, with descriptors where the model takes them."""
    data = TrainingData.load(cached(cell.dataset))
    if not cell.model.takes_descriptors:
        data = data.without_descriptors()
    return data


def train_cell(cell: Cell) -> tuple[Result, list[float]]:
    """Train one cell; return its result and the held-out RMSE at every look."""
    data = load(cell)
    config = TrainConfig(seed=cell.seed, folds=int(data.folds.max()) + 1)
    if cell.model.block == "catboost":
        return train_boosted(cell, data, config), []
    config = dataclasses.replace(config, **settings(starts=False, classes=all(data.is_class)))
    trainer = ExpertTrainer(data, cell.model, config, cell.fold)
    curve, seconds = [], 0.0
    while trainer.epoch < config.epochs:
        began = time.process_time()
        trainer.run_epoch()
        seconds += time.process_time() - began
        if trainer.epoch % LOOK_EVERY == 0:
            looked = score(data, trainer.held_out, trainer.predict(trainer.held_out))
            curve += [looked["rmse"]] if looked["rmse"] is not None else []
    line = result(
        *cell.place,
        metrics=score(data, trainer.held_out, trainer.result().predictions),
        seconds=seconds,
        parameters=trainer.model.n_parameters(),
    )
    return line, curve


def train_boosted(cell: Cell, data: TrainingData, config: TrainConfig) -> Result:
    """Train CatBoost on the same rows."""
    began = time.process_time()
    done, _ = train_trees(data, config, cell.fold)
    seconds = time.process_time() - began
    metrics = score(data, done.rows, done.predictions)
    return result(*cell.place, metrics=metrics, seconds=seconds)


def score(data: TrainingData, rows: Any, outputs: Any) -> Metrics:
    """Return the scores of a model's outputs on rows."""
    p = outputs[:, 0].astype(float)
    return metrics_of(data, rows, sigmoid(p) if data.is_class[0] else p)


def metrics_of(data: TrainingData, rows: Any, predicted: Any) -> Metrics:
    """Return the scores of predictions on rows; of a class they are probabilities."""
    y = data.values[rows, 0]
    if data.is_class[0]:
        return classification_metrics(y, predicted) | {"rmse": None, "mae": None}
    return regression_metrics(y, predicted) | {"roc_auc": None}


def result(
    dataset: str,
    model: str,
    seed: int,
    fold: int,
    *,
    metrics: Metrics,
    seconds: float,
    parameters: int = 0,
) -> Result:
    """Return the line of a cell."""

    def rounded(name: str) -> float | None:
        value = metrics[name]
        return None if value is None else round(value, 5)

    return Result(
        dataset=dataset,
        model=model,
        seed=seed,
        fold=fold,
        rmse=rounded("rmse"),
        mae=rounded("mae"),
        roc_auc=rounded("roc_auc"),
        parameters=parameters,
        seconds=round(seconds, 2),
    )


def keep(line: Result) -> None:
    """Add the line of a cell to the results."""
    append(RESULTS, list(asdict(line)), list(asdict(line).values()))


def read_done() -> set[tuple[str, str, int, int]]:
    """Return the cells that stand in the results."""
    if not RESULTS.exists():
        return set()
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return {
            (r["dataset"], r["model"], int(r["seed"]), int(r["fold"])) for r in csv.DictReader(file)
        }


def append(path: Path, columns: list[str], row: list[object]) -> None:
    """Add one line to a results file, at once on the disk."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(columns)
        writer.writerow(row)
        file.flush()
        os.fsync(file.fileno())


def waiting(tables: list[str], models: list[str], seeds: int) -> Iterator[Cell]:
    """Yield the cells still to train, each once, table by table."""
    done = read_done()
    for table in TABLES:
        if tables and table.name not in tables:
            continue
        for cell in table.cells():
            wanted = cell.seed < seeds and (not models or label(cell.model) in models)
            if wanted and cell.place not in done:
                done.add(cell.place)
                yield cell


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--esol", type=Path, required=True, help="delaney-processed.csv")
    parser.add_argument("--folds", type=Path, required=True, help="table with columns row, fold")
    names = [table.name for table in TABLES]
    parser.add_argument("--tables", nargs="*", choices=names, default=[], help="default: all")
    parser.add_argument("--models", nargs="*", default=[], help="as they are named, default: all")
    parser.add_argument("--seeds", type=int, default=100, help="no more seeds than this")
    parser.add_argument("--workers", type=int, default=available_cpus(), help="processes")
    options = parser.parse_args()

    cells = list(waiting(options.tables, options.models, options.seeds))
    for name in sorted({cell.dataset for cell in cells}):
        if name == "esol":
            prepare_dataset(name, options.esol, options.folds)
        else:
            prepare_dataset(name, HERE / ".cache" / f"{name}.csv", None)
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context, start_worker) as pool:
        futures = {pool.submit(train_cell, cell): cell for cell in cells}
        for n, future in enumerate(as_completed(futures), 1):
            line, curve = future.result()
            keep(line)
            if curve:
                row: list[object] = [line.dataset, line.model, line.seed, line.fold]
                row.append(" ".join(f"{value:.4f}" for value in curve))
                append(CURVES, ["dataset", "model", "seed", "fold", "rmse"], row)
            value = line.rmse if line.rmse is not None else line.roc_auc
            print(f"{n}/{len(cells)} {futures[future].key}: {value} in {line.seconds:.0f} s")


if __name__ == "__main__":
    main()

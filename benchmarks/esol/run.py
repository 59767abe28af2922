"""Train the cells of the benchmark and keep what each gave; stop and start as you like.

    python benchmarks/esol/run.py --esol esol.csv --folds folds.csv
    python benchmarks/esol/run.py --esol esol.csv --folds folds.csv --tables default dt --seeds 1

Each finished cell is one line of `cells.csv` and one of `curves.csv`; a cell that stands there
is not trained again. Cells train one to a process and thread. Nothing here picks a model: the
held-out error is looked at every other epoch for the convergence table and not acted upon.
"""

import argparse
import csv
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from cells import TABLES, Cell, label

from molscore.chem.policy import ChemPolicy
from molscore.cpus import available_cpus
from molscore.data.targets import read_labelled
from molscore.stats.metrics import regression_metrics
from molscore.train.config import TrainConfig
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
        rmse: on the held-out fold, in the unit of the target.
        mae: likewise.
        parameters: trained numbers of the model.
        seconds: of the processor, spent in training alone: without start-up and without looking
            at the held-out error.
    """

    dataset: str
    model: str
    seed: int
    fold: int
    rmse: float
    mae: float
    parameters: int
    seconds: float


def prepare_esol(table: Path, folds_file: Path, cache: Path) -> None:
    """Featurise ESOL, descriptors included, and keep it for the workers."""
    if cache.exists():
        return
    with folds_file.open(encoding="utf-8-sig", newline="") as file:
        fold_of = {int(r["row"]): int(r["fold"]) for r in csv.DictReader(file)}
    prepared = prepare(
        read_labelled(table),
        policy=ChemPolicy(),
        split="file",
        n_folds=5,
        seed=0,
        descriptors=True,
        folds=np.array([fold_of[i] for i in range(len(fold_of))]),
    )
    cache.parent.mkdir(exist_ok=True)
    prepared.data.save(cache)


def start_worker() -> None:
    """Set a worker up as training itself is: one thread, deterministic."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def load(cell: Cell, cache: Path) -> TrainingData:
    """Return the data set, with descriptors where the model takes them."""
    data = TrainingData.load(cache)
    if not cell.model.takes_descriptors:
        data = TrainingData(**{**vars(data), "descriptors": None})
    return data


def train_cell(cell: Cell, cache: Path) -> tuple[Result, list[float]]:
    """Train one cell; return its result and the held-out RMSE at every look."""
    data = load(cell, cache)
    config = TrainConfig(seed=cell.seed, folds=int(data.folds.max()) + 1)
    if cell.model.block == "catboost":
        return train_boosted(cell, data, config), []
    trainer = ExpertTrainer(data, cell.model, config, cell.fold)
    curve, seconds = [], 0.0
    while trainer.epoch < config.epochs:
        began = time.process_time()
        trainer.run_epoch()
        seconds += time.process_time() - began
        if trainer.epoch % LOOK_EVERY == 0:
            curve.append(score(data, trainer.held_out, trainer.predict(trainer.held_out))[0])
    rmse, mae = score(data, trainer.held_out, trainer.result().predictions)
    return result(cell, rmse, mae, trainer.model.n_parameters(), seconds), curve


def train_boosted(cell: Cell, data: TrainingData, config: TrainConfig) -> Result:
    """Train CatBoost on the same rows."""
    began = time.process_time()
    done, _ = train_trees(data, config, cell.fold)
    seconds = time.process_time() - began
    return result(cell, *score(data, done.rows, done.predictions), 0, seconds)


def score(data: TrainingData, rows: Any, predictions: Any) -> tuple[float, float]:
    """Return RMSE and MAE of predictions on rows."""
    metrics = regression_metrics(data.values[rows, 0], predictions[:, 0].astype(float))
    if metrics["rmse"] is None or metrics["mae"] is None:
        raise SystemExit("a fold without labels, or a model without a finite error")
    return metrics["rmse"], metrics["mae"]


def result(cell: Cell, rmse: float, mae: float, parameters: int, seconds: float) -> Result:
    """Return the line of a cell."""
    return Result(
        dataset=cell.dataset,
        model=label(cell.model),
        seed=cell.seed,
        fold=cell.fold,
        rmse=round(rmse, 5),
        mae=round(mae, 5),
        parameters=parameters,
        seconds=round(seconds, 2),
    )


def read_done() -> set[tuple[str, str, int, int]]:
    """Return the cells that stand in the results."""
    if not RESULTS.exists():
        return set()
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return {
            (r["dataset"], r["model"], int(r["seed"]), int(r["fold"]))
            for r in csv.DictReader(file)
            if r["seconds"]
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


def waiting(tables: list[str], seeds: int) -> Iterator[Cell]:
    """Yield the cells still to train, each once, table by table."""
    done = read_done()
    for table in TABLES:
        if tables and table.name not in tables:
            continue
        for cell in table.cells():
            key = (cell.dataset, label(cell.model), cell.seed, cell.fold)
            if key not in done and cell.seed < seeds:
                done.add(key)
                yield cell


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--esol", type=Path, required=True, help="delaney-processed.csv")
    parser.add_argument("--folds", type=Path, required=True, help="table with columns row, fold")
    names = [table.name for table in TABLES]
    parser.add_argument("--tables", nargs="*", choices=names, default=[], help="default: all")
    parser.add_argument("--seeds", type=int, default=100, help="no more seeds than this")
    parser.add_argument("--workers", type=int, default=available_cpus(), help="processes")
    options = parser.parse_args()

    cache = HERE / ".cache" / "esol.safetensors"
    prepare_esol(options.esol, options.folds, cache)
    cells = list(waiting(options.tables, options.seeds))
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context, start_worker) as pool:
        futures = {pool.submit(train_cell, cell, cache): cell for cell in cells}
        for n, future in enumerate(as_completed(futures), 1):
            line, curve = future.result()
            append(RESULTS, list(asdict(line)), list(asdict(line).values()))
            if curve:
                row: list[object] = [line.dataset, line.model, line.seed, line.fold]
                row.append(" ".join(f"{value:.4f}" for value in curve))
                append(CURVES, ["dataset", "model", "seed", "fold", "rmse"], row)
            print(
                f"{n}/{len(cells)} {futures[future].key}: {line.rmse:.3f} in {line.seconds:.0f} s"
            )


if __name__ == "__main__":
    main()

"""Train chemprop on the data sets and folds of the benchmark; its lines join `cells.csv`.

    python benchmarks/esol/peers.py --chemprop VENV/bin/chemprop --esol esol.csv

A data set that `run.py` has prepared is trained once, all folds in one process of chemprop, as
`../train_time` does it: its defaults, 50 epochs, a tenth of each training part held out to pick
the best epoch. A data set whose lines are there is not trained again.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cells import CHEMPROP, TABLES
from run import HERE, Result, cached, keep, metrics_of, read_done, result

from molscore.data.targets import read_labelled
from molscore.train.data import TrainingData

sys.path.insert(0, str(HERE.parent / "train_time"))
from measure import Table, train_chemprop, write_csv

EPOCHS: Final = 50
SEED: Final = 0


def train(dataset: str, table: Path, program: str) -> Iterator[Result]:
    """Train chemprop on all folds of a data set and yield the line of each."""
    data = TrainingData.load(cached(dataset))
    written = read_labelled(table).smiles
    smiles = [written[row].strip() for row in data.table_rows]
    is_class = data.is_class[0]
    rows = Table(smiles, data.values[:, 0].tolist(), data.folds.tolist())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        values = [int(v) if is_class else v for v in rows.values]
        write_csv(work / "data.csv", ["smiles", "y"], list(zip(smiles, values, strict=True)))
        task = "classification" if is_class else "regression"
        _, cpu, predictions = train_chemprop(
            program, rows, work / "data.csv", work, EPOCHS, SEED, task
        )
    for fold, predicted in predictions.items():
        metrics = metrics_of(data, rows.held_out(fold), predicted)
        seconds = cpu / len(predictions)
        yield result(dataset, CHEMPROP, SEED, fold, metrics=metrics, seconds=seconds)


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--chemprop", required=True, help="its executable")
    parser.add_argument("--esol", type=Path, required=True, help="delaney-processed.csv")
    known = sorted({table.dataset for table in TABLES})
    parser.add_argument("--datasets", nargs="*", choices=known, default=known)
    options = parser.parse_args()

    done = {(dataset, model) for dataset, model, _, _ in read_done()}
    for dataset in options.datasets:
        if (dataset, CHEMPROP) in done:
            continue
        table = options.esol if dataset == "esol" else HERE / ".cache" / f"{dataset}.csv"
        # Whole or not at all: all folds are trained before the first line is kept.
        for line in list(train(dataset, table, options.chemprop)):
            keep(line)


if __name__ == "__main__":
    main()

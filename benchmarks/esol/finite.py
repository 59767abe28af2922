"""Start every graph family under every depth plan, K = 2 to 7, in every readout, at full size.

    python benchmarks/esol/finite.py

Trains each for two epochs on ESOL (prepared by `run.py`), the first fold held out, the whole
schedule squeezed into them, and writes the RMSE of both parts, or what went wrong, to
`tables/finite.csv`; a line that stands there is not trained again. Two epochs say that numbers
stay finite where the rate is highest, and nothing of how good a model gets.
"""

import csv
import itertools
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final, get_args

from cells import GRAPH_BLOCKS, label
from run import HERE, append, cached, score, start_worker

from molscore.cpus import available_cpus
from molscore.errors import MolscoreError
from molscore.nn.config import ModelConfig, Readout
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.expert import ExpertTrainer

OUT: Final = HERE / "tables" / "finite.csv"
PLANS: Final = ("{k}x1@1", "{k}x1@0.5", "{k}x1+", "1x{k}@0.5", "1x{k}@1/K")
EPOCHS: Final = 2


def start(model: ModelConfig) -> tuple[str, str, str]:
    """Return the RMSE of the training part and of the held-out fold, and the outcome."""
    data = TrainingData.load(cached("esol")).without_descriptors()
    trainer = ExpertTrainer(data, model, TrainConfig(epochs=EPOCHS), 0)
    try:
        for _ in range(EPOCHS):
            trainer.run_epoch()
    except MolscoreError as error:
        return "", "", str(error)
    parts = (trainer.rows, trainer.held_out)
    seen, unseen = (score(data, rows, trainer.predict(rows))["rmse"] for rows in parts)
    return f"{seen:.3f}", f"{unseen:.3f}", "finite"


def main() -> None:
    """Start what is missing."""
    done = set()
    if OUT.exists():
        with OUT.open(encoding="utf-8", newline="") as file:
            done = {line["model"] for line in csv.DictReader(file)}
    grid = itertools.product(GRAPH_BLOCKS, PLANS, range(2, 8), get_args(Readout))
    models = [ModelConfig(block=b, plan=p.format(k=k), readout=r) for b, p, k, r in grid]
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(available_cpus(), get_context("spawn"), start_worker) as pool:
        futures = {pool.submit(start, m): label(m) for m in models if label(m) not in done}
        for future in as_completed(futures):
            row: list[object] = [futures[future], *future.result()]
            append(OUT, ["model", "seen", "unseen", "outcome"], row)


if __name__ == "__main__":
    main()

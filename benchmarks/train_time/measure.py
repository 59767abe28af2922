"""Wall time of a five-fold training: molscore against chemprop, on the same folds, in one run.

    python benchmarks/train_time/measure.py esol.csv folds.csv --chemprop VENV/bin/chemprop

Both programs get the same two-column table and the same folds, and use the machine as they do
by default. chemprop trains all folds in one process (one start-up) with 10 % of each training
part held out for its early stopping; molscore needs no such part. RMSE is computed here, from
the predictions each program wrote for its held-out rows.
"""

import argparse
import csv
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from molscore.stats.metrics import regression_metrics

HERE: Final = Path(__file__).resolve().parent
VALIDATION: Final = 0.1
"""Share of a training part that chemprop holds out to pick its best epoch."""


@dataclass(frozen=True)
class Table:
    """What both programs train on: SMILES, values [n] and the fold each row is held out in."""

    smiles: list[str]
    values: list[float]
    folds: list[int]

    @property
    def n_folds(self) -> int:
        """The number of different folds."""
        return len(set(self.folds))

    def held_out(self, fold: int) -> list[int]:
        """Return the rows that are held out in `fold`."""
        return [row for row, f in enumerate(self.folds) if f == fold]


@dataclass(frozen=True)
class Run:
    """One training over all folds: seconds on the clock and of all processors, RMSE per fold."""

    wall_s: float
    cpu_s: float
    fold_rmse: list[float]


def read_table(data: Path, folds_file: Path, smiles_column: str, target: str) -> Table:
    """Read the table and its folds (columns row, fold; every row once)."""
    with data.open(encoding="utf-8-sig", newline="") as file:
        records = list(csv.DictReader(file))
    with folds_file.open(encoding="utf-8-sig", newline="") as file:
        fold_of = {int(r["row"]): int(r["fold"]) for r in csv.DictReader(file)}
    if sorted(fold_of) != list(range(len(records))):
        raise SystemExit(f"{folds_file}: expected a fold for each of {len(records)} rows")
    return Table(
        smiles=[r[smiles_column].strip() for r in records],
        values=[float(r[target]) for r in records],
        folds=[fold_of[row] for row in range(len(records))],
    )


def chemprop_splits(table: Table, seed: int) -> list[dict[str, list[int]]]:
    """Return train, val and test rows per fold; val is a random tenth of the training part."""
    rng = np.random.default_rng(seed)
    splits = []
    for fold in sorted(set(table.folds)):
        test = table.held_out(fold)
        rest = rng.permutation([r for r, f in enumerate(table.folds) if f != fold]).tolist()
        n_val = round(VALIDATION * len(rest))
        splits.append({"train": sorted(rest[n_val:]), "val": sorted(rest[:n_val]), "test": test})
    return splits


def run_chemprop(program: str, table: Table, data: Path, work: Path, epochs: int, seed: int) -> Run:
    """Train chemprop on every fold and return what it took and how well it did."""
    wall, cpu, predictions = train_chemprop(program, table, data, work, epochs, seed)
    scores = [
        rmse(table, table.held_out(fold), predicted) for fold, predicted in predictions.items()
    ]
    return Run(wall, cpu, scores)


def train_chemprop(
    program: str,
    table: Table,
    data: Path,
    work: Path,
    epochs: int,
    seed: int,
    task: str = "regression",
) -> tuple[float, float, dict[int, list[float]]]:
    """Train chemprop on every fold, in one process.

    Args:
        program: its executable.
        table: what it trains on.
        data: the same as a file with the columns smiles and y.
        work: folder for what it writes.
        epochs: passes over the training part.
        seed: of torch, and of the rows held out for early stopping.
        task: `regression` or `classification`.

    Returns:
        Seconds on the clock, of all processors, and by fold the predictions of its held-out
        rows (of a class its probability).
    """
    splits, output = work / "splits.json", work / "chemprop"
    splits.write_text(json.dumps(chemprop_splits(table, seed)))
    command = [program, "train", "--data-path", data, "--smiles-columns", "smiles"]
    command += ["--target-columns", "y", "--splits-file", splits, "--output-dir", output]
    command += ["--epochs", epochs, "--pytorch-seed", seed, "--accelerator", "cpu"]
    command += ["--task-type", task]
    wall, cpu = timed(command, work / "chemprop.log")
    predictions = {}
    for number, fold in enumerate(sorted(set(table.folds))):
        with (output / f"replicate_{number}/model_0/test_predictions.csv").open() as file:
            predictions[fold] = [float(r["y"]) for r in csv.DictReader(file)]
    return wall, cpu, predictions


def run_molscore(
    program: str, table: Table, data: Path, work: Path, epochs: int | None, seed: int
) -> Run:
    """Train molscore on every fold and return what it took and how well it did."""
    folds = work / "folds.csv"
    write_csv(folds, ["row", "fold"], list(enumerate(table.folds)))
    command = [program, "train", data, "--folds-file", folds, "--output", work / "m.molscore"]
    command += ["--run-dir", work / "molscore", "--seed", seed, "--force"]
    command += ["--epochs", epochs] if epochs else []
    wall, cpu = timed(command, work / "molscore.log")
    with (work / "molscore/oof.csv").open() as file:
        predicted = {int(r["row"]): float(r["prediction"]) for r in csv.DictReader(file)}
    scores = []
    for fold in sorted(set(table.folds)):
        rows = table.held_out(fold)
        scores.append(rmse(table, rows, [predicted[row] for row in rows]))
    return Run(wall, cpu, scores)


def rmse(table: Table, rows: Sequence[int], predictions: Sequence[float]) -> float:
    """Return the RMSE of `predictions` for `rows` of the table."""
    score = regression_metrics([table.values[row] for row in rows], predictions)["rmse"]
    if score is None:
        raise SystemExit("a fold has no rows")
    return round(score, 4)


def timed(command: Sequence[object], log: Path) -> tuple[float, float]:
    """Run `command` with its output in `log`; return wall and processor seconds."""
    print("$", *command, flush=True)
    used, started = children_cpu(), time.perf_counter()
    with log.open("w") as file:
        finished = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    wall = time.perf_counter() - started
    if finished.returncode:
        raise SystemExit(f"failed with exit code {finished.returncode}:\n{log.read_text()[-3000:]}")
    return round(wall, 3), round(children_cpu() - used, 3)


def children_cpu() -> float:
    """Return the processor seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine() -> dict[str, Any]:
    """Describe what the figures were measured on, and how busy it was before."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model,
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions(program: str, packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of `packages` in the environment that `program` belongs to."""
    code = "import importlib.metadata as m, json, sys\n"
    code += "print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    python = Path(program).parent / "python"
    answer = subprocess.run([python, "-c", code, *packages], check=True, capture_output=True)
    return dict(json.loads(answer.stdout))


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a small table."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def summary(rounds: Sequence[Run]) -> dict[str, Any]:
    """Return the medians over rounds, the mean RMSE, and every round as it was."""
    return {
        "wall_s": statistics.median(run.wall_s for run in rounds),
        "cpu_s": statistics.median(run.cpu_s for run in rounds),
        "mean_rmse": round(statistics.fmean(rounds[0].fold_rmse), 4),
        "fold_rmse": rounds[0].fold_rmse,
        "rounds": [asdict(run) for run in rounds],
    }


def measure(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run both programs in turn, `args.rounds` times, and return the results."""
    table = read_table(args.data, args.folds, args.smiles_column, args.target)
    data = work / "data.csv"
    write_csv(data, ["smiles", "y"], list(zip(table.smiles, table.values, strict=True)))
    described = machine()
    runs: dict[str, list[Run]] = {"molscore": [], "chemprop": []}
    for number in range(args.rounds):
        here = work / str(number)
        here.mkdir()
        mine = run_molscore(args.molscore, table, data, here, args.molscore_epochs, args.seed)
        theirs = run_chemprop(args.chemprop, table, data, here, args.epochs, args.seed)
        runs["molscore"].append(mine)
        runs["chemprop"].append(theirs)
    result = {name: summary(rounds) for name, rounds in runs.items()}
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "machine": described,
        "versions": {
            "molscore": versions(args.molscore, ["molscore", "torch", "rdkit"]),
            "chemprop": versions(args.chemprop, ["chemprop", "torch", "rdkit"]),
        },
        "protocol": {
            "data": args.data.name,
            "rows": len(table.values),
            "folds": table.n_folds,
            "seed": args.seed,
            "chemprop_epochs": args.epochs,
            "chemprop_validation_share": VALIDATION,
            "molscore_epochs": args.molscore_epochs or "default",
        },
        **result,
        "wall_ratio": round(result["molscore"]["wall_s"] / result["chemprop"]["wall_s"], 3),
    }


def report(result: dict[str, Any]) -> str:
    """Return the results as a few lines for people."""
    lines = [f"{key}: {value}" for key, value in result["machine"].items()]
    lines.append(f"{'':10}{'wall s':>9}{'cpu s':>9}{'RMSE':>8}  per fold")
    for name in ("molscore", "chemprop"):
        r = result[name]
        folds = " ".join(f"{x:.3f}" for x in r["fold_rmse"])
        lines.append(f"{name:10}{r['wall_s']:9.1f}{r['cpu_s']:9.1f}{r['mean_rmse']:8.3f}  {folds}")
    lines.append(f"wall time of molscore / chemprop: {result['wall_ratio']:.3f}")
    return "\n".join(lines)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="CSV table with a SMILES and a value column")
    parser.add_argument("folds", type=Path, help="CSV with the columns row, fold")
    parser.add_argument("--chemprop", required=True, help="chemprop's executable")
    parser.add_argument("--molscore", default=str(Path(sys.executable).parent / "molscore"))
    parser.add_argument("--smiles-column", default="smiles")
    parser.add_argument("--target", default="measured log solubility in mols per litre")
    parser.add_argument("--epochs", type=int, default=50, help="chemprop's; 50 is its default")
    parser.add_argument("--molscore-epochs", type=int, help="only to try this script out")
    parser.add_argument("--rounds", type=int, default=1, help="how often both run, in turn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, print, and write the results file."""
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as work:
        result = measure(args, Path(work))
    args.output.write_text(json.dumps(result, indent=2) + "\n")
    print(report(result))


if __name__ == "__main__":
    main()

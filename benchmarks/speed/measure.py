"""Molecules per second and memory of whole commands, against RDKit's parsing and against peers.

    python -m benchmarks.speed.measure molecules.smi.gz esol.csv --chemprop VENV/bin/chemprop

Trains the models it needs for one epoch (a model's speed does not depend on what it learned),
then runs every command `--rounds` times, in turn, each with its start-up, and writes
`results.csv` after each: it can be stopped and started again. `tables.md` is made of it.
"""

import argparse
import csv
import gzip
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from benchmarks.train_time.measure import machine

HERE: Final = Path(__file__).resolve().parent
RESULTS: Final = HERE / "results.csv"
MOLSCORE: Final = str(Path(sys.executable).parent / "molscore")

PARSE: Final = """
import gzip, sys
from multiprocessing import get_context
from rdkit import Chem, rdBase

def parse(lines):
    return sum(Chem.MolFromSmiles(line.split()[0]) is not None for line in lines)

if __name__ == "__main__":
    with gzip.open(sys.argv[1], "rt") as file:
        lines = file.readlines()
    blocks = [lines[i : i + 512] for i in range(0, len(lines), 512)]
    with rdBase.BlockLogs(), get_context("spawn").Pool(int(sys.argv[2])) as pool:
        print(sum(pool.imap(parse, blocks)))
"""
"""RDKit's parsing and nothing else, in as many processes as a prediction has workers."""


@dataclass(frozen=True)
class Case:
    """One command to time.

    Attributes:
        part: of the benchmark: `peers` or what grows: `rows`, `atoms`, `experts`.
        name: what runs.
        rows: molecules.
        workers: processes that work.
        command: its words.
    """

    part: str
    name: str
    rows: int
    workers: int
    command: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What its line in the results begins with."""
        return self.part, self.name, str(self.rows), str(self.workers)


@dataclass(frozen=True)
class Result:
    """What a case took.

    Attributes:
        seconds: on the clock, start-up included, median of the rounds.
        spread: slowest less fastest round, as a share of the median; empty for one round.
        per_second: molecules.
        peak_mb: resident memory of the largest of its processes, the largest of the rounds.
        status: `ok`, or how it ended.
    """

    part: str
    name: str
    rows: int
    workers: int
    seconds: float
    spread: float | str
    per_second: float
    peak_mb: float
    status: str


def run(command: Sequence[str], log: Path) -> tuple[float, float, str]:
    """Run a command; return seconds, peak memory in MB and how it ended.

    The memory is that of the largest process among the command's and its children.
    """
    started = time.perf_counter()
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out
        )
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = code = os.waitstatus_to_exitcode(status)
    peak = max(usage.ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return seconds, peak / 1024, "ok" if code == 0 else f"exit {code}"


def measure(command: Sequence[str], log: Path) -> tuple[float, float, str]:
    """As `run`, in a process of its own: the memory of earlier commands does not count."""
    code = (
        "import json, sys; from pathlib import Path; from benchmarks.speed.measure import run; "
        "print(json.dumps(run(sys.argv[2:], Path(sys.argv[1]))))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(log), *command], check=True, capture_output=True, text=True
    )
    seconds, peak, status = json.loads(answer.stdout)
    return seconds, peak, status


class Bench:
    """Files, models and commands.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work: Path = options.work
        self.work.mkdir(parents=True, exist_ok=True)
        with gzip.open(options.molecules, "rt") as file:
            self.lines = [line.split()[0] for line in file if line.strip()]

    def table(self, n: int) -> str:
        """Return a file of the first n molecules, from the start again where they run out."""
        path = self.work / f"rows-{n}.smi.gz"
        return self._written(path, islice(cycle(self.lines), n))

    def chains(self, n_atoms: int, n: int) -> str:
        """Return a file of n molecules of so many atoms: random chains with many rings.

        No two are alike, or those that share what they compute would have nothing to do.
        """
        draw = random.Random(n_atoms)
        path = self.work / f"chains-{n_atoms}-{n}.smi.gz"
        return self._written(path, (_chain(draw, n_atoms) for _ in range(n)))

    def _written(self, path: Path, lines: Iterator[str]) -> str:
        if not path.exists():
            with gzip.open(path, "wt", compresslevel=1) as file:
                file.writelines(f"{line}\n" for line in lines)
        return str(path)

    def made(self, path: Path, *command: str) -> str:
        """Return a model, made by a command if it is not there."""
        if not path.exists():
            print("$", *command, flush=True)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        return str(path)

    def trained(self, name: str, *options: str) -> str:
        """Return a bundle trained for one epoch."""
        path = self.work / f"{name}.molscore"
        command = [MOLSCORE, "train", str(self.options.table), "--output", str(path), "--force"]
        command += ["--target", self.options.target, "--quiet", *options]
        return self.made(path, *command)

    def student(self) -> str:
        """Return a student of the five experts, taught for one epoch."""
        path = self.work / "student.molscore"
        command = [MOLSCORE, "distill", self.trained("five", "--epochs", "1")]
        command += [str(self.options.table), "--output", str(path), "--force", "--quiet"]
        return self.made(path, *command, "--epochs", "1")

    def chemprop_model(self) -> str:
        """Return one model of chemprop, trained for as few epochs as it can."""
        path = self.work / "chemprop"
        command = [self.options.chemprop, "train", "--data-path", str(self.options.table)]
        command += ["--smiles-columns", "smiles", "--target-columns", self.options.target]
        command += ["--output-dir", str(path), "--epochs", "3", "--accelerator", "cpu"]
        return self.made(path / "model_0" / "best.pt", *command)

    def predict(
        self,
        part: str,
        name: str,
        table: str,
        n: int,
        workers: int,
        model: str,
        trust: tuple[str, ...] = ("--interval", "0", "--no-domain"),
    ) -> Case:
        """Return a prediction by molscore: of values alone, as the others make, unless told."""
        command: tuple[str, ...] = (MOLSCORE, "predict", table, "--model", model, "--quiet", *trust)
        command += ("--workers", str(workers), "--output", str(self.work / "out.csv"), "--force")
        return Case(part, name, n, workers, command)

    def peers(self) -> Iterator[Case]:
        """Yield RDKit's parsing, molscore and the others on the same molecules."""
        n, few = self.options.rows, self.options.rows // 20
        five = self.trained("five", "--epochs", "1")
        student = self.student()
        trees = self.trained("trees", "--block", "catboost")
        script = self.work / "parse.py"
        script.write_text(PARSE)
        for workers in (2, 1):
            command: tuple[str, ...] = (sys.executable, str(script), self.table(n), str(workers))
            yield Case("peers", "RDKit parsing alone", n, workers, command)
            yield self.predict("peers", "student", self.table(n), n, workers, student)
            yield self.predict("peers", "five experts", self.table(n), n, workers, five)
        yield self.predict("peers", "CatBoost, descriptors", self.table(few), few, 2, trees)
        if self.options.chemprop:
            table = self.work / f"rows-{n}.csv"
            table.write_text("\n".join(["smiles", *islice(cycle(self.lines), n)]) + "\n")
            command = (self.options.chemprop, "predict", "--test-path", str(table))
            command += ("--model-paths", self.chemprop_model(), "--smiles-columns", "smiles")
            command += ("--preds-path", str(self.work / "chemprop.csv"), "--accelerator", "cpu")
            yield Case("peers", "chemprop, one model", n, 2, command)

    def trust(self) -> Iterator[Case]:
        """Yield the shipped models, with and without what they say of their errors."""
        n = self.options.rows
        for model in ("aqsol", "aqsol-student"):
            yield self.predict("trust", f"{model}, values alone", self.table(n), n, 2, model)
            name = f"{model}, with intervals and domain"
            yield self.predict("trust", name, self.table(n), n, 2, model, ())

    def growth(self) -> Iterator[Case]:
        """Yield what grows: rows, atoms, experts."""
        five, student = self.trained("five", "--epochs", "1"), self.student()
        for n in (1_000, 10_000, 100_000, 1_000_000):
            yield self.predict("rows", "student", self.table(n), n, 2, student)
        for n in (100_000, 1_000_000):
            yield self.predict("rows", "five experts", self.table(n), n, 2, five)
        for n_atoms in (10, 25, 50, 100, 200, 400):
            n = 40_000 // n_atoms
            table = self.chains(n_atoms, n)
            yield self.predict("atoms", f"five experts, {n_atoms} atoms", table, n, 1, five)
        many = self.trained("many", "--epochs", "1", "--repeats", "5")
        one = self.trained("one", "--epochs", "1", "--folds", "1")
        for name, model in (("1 expert", one), ("5 experts", five), ("25 experts", many)):
            yield self.predict("experts", name, self.table(10_000), 10_000, 2, model)


PARTS: Final = ("peers", "trust", "growth")

PIECES: Final = (
    *(("C(c1ccccc1)", 7), ("C1CCN(CC1)", 6), ("c1ccc(cc1)", 6), ("C(=O)N", 3), ("C(C)(C)", 3)),
    *(("C(O)", 2), ("C(F)", 2), ("CO", 2), ("C", 1)),
)
"""Parts of a chain, as SMILES that go on from the part before, and their heavy atoms."""


def _chain(draw: random.Random, n_atoms: int) -> str:
    """Return a random molecule of so many heavy atoms."""
    parts = ["C"]
    left = n_atoms - 1
    while left:
        piece, n = draw.choice([one for one in PIECES if one[1] <= left])
        parts.append(piece)
        left -= n
    return "".join(parts)


def read_results() -> list[dict[str, str]]:
    """Return the lines of the results."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def take(cases: Sequence[Case], rounds: int, work: Path, keep: Callable[[Result], None]) -> None:
    """Run cases in turn, round after round; keep each when its last round is done."""
    seen: dict[tuple[str, ...], list[tuple[float, float, str]]] = {c.key: [] for c in cases}
    for number in range(rounds):
        for case in cases:
            took = measure(case.command, work / "log.txt")
            seen[case.key].append(took)
            print(f"round {number + 1}: {case.part}: {case.name}, {case.rows}: {took}", flush=True)
            if number == rounds - 1:
                keep(summary(case, seen[case.key]))


def summary(case: Case, rounds: Sequence[tuple[float, float, str]]) -> Result:
    """Return the line of a case: seconds, peak memory and outcome of every round."""
    seconds = [s for s, _, _ in rounds]
    middle = statistics.median(seconds)
    bad = [status for _, _, status in rounds if status != "ok"]
    return Result(
        *(case.part, case.name, case.rows, case.workers),
        seconds=round(middle, 2),
        spread=round((max(seconds) - min(seconds)) / middle, 3) if len(seconds) > 1 else "",
        per_second=round(case.rows / middle, 1),
        peak_mb=round(max(peak for _, peak, _ in rounds)),
        status=bad[0] if bad else "ok",
    )


def keep(result: Result) -> None:
    """Add a line to the results."""
    new = not RESULTS.exists()
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([f.name for f in fields(Result)])
        writer.writerow(asdict(result).values())


def tables(lines: Sequence[dict[str, str]]) -> str:
    """Return the results as Markdown, with the ratios that are asked for."""
    rate = {
        (r["name"], r["workers"]): float(r["per_second"]) for r in lines if r["part"] == "peers"
    }
    text = []
    for part in dict.fromkeys(r["part"] for r in lines):
        peers = part == "peers"
        head = [
            "command",
            "rows",
            "workers",
            "seconds",
            "spread",
            "per second",
            "peak MB",
            "status",
        ]
        head += ["/ parsing", "/ chemprop"] if peers else []
        text += [f"## {part}", "", "| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
        for r in lines:
            if r["part"] != part:
                continue
            cells = [r[k] for k in ("name", "rows", "workers", "seconds", "spread")]
            cells += [r[k] for k in ("per_second", "peak_mb", "status")]
            if peers:
                floor = rate.get(("RDKit parsing alone", r["workers"]))
                theirs = rate.get(("chemprop, one model", "2"))
                mine = float(r["per_second"])
                cells += [f"{mine / x:.3f}" if x else "" for x in (floor, theirs)]
            text.append("| " + " | ".join(cells) + " |")
        text.append("")
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("molecules", type=Path, help="one SMILES a line, gzipped")
    parser.add_argument("table", type=Path, help="a table to train the models on")
    parser.add_argument("--target", default="measured log solubility in mols per litre")
    parser.add_argument("--chemprop", help="its executable; left out when not given")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=HERE / ".cache", help="files and models")
    options = parser.parse_args(arguments)
    bench = Bench(options)
    about: dict[str, Any] = machine()
    for part in options.parts:
        cases = list(getattr(bench, part)())
        done = {(r["part"], r["name"], r["rows"], r["workers"]) for r in read_results()}
        waiting = [case for case in cases if case.key not in done]
        take(waiting, options.rounds if part == "peers" else 1, bench.work, keep)
    (HERE / "machine.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    text = tables(read_results())
    (HERE / "tables.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

"""Time from SMILES to packed graphs, as a ratio to RDKit's own parsing, in one process.

    python -m benchmarks.reading_time.measure molecules.smi.gz

The steps take turns on small blocks of molecules, so that a busy machine disturbs all alike; of
every block and step the fastest round counts.
"""

import argparse
import datetime
import gzip
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rdkit import Chem, rdBase

from benchmarks.train_time.measure import machine
from molscore.chem.binary import read_binary
from molscore.chem.graph import featurize_many
from molscore.chem.parse import Molecule, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.chem.skeleton import ask

HERE: Final = Path(__file__).resolve().parent
BLOCK: Final = 256
"""Molecules between two turns: fewer are seldom interrupted, more share what a call costs."""
POLICY: Final = ChemPolicy()


def read_smiles(path: Path, n: int, seed: int) -> list[str]:
    """Return at most `n` SMILES of a file with one a line, drawn at random."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        texts = [line.split()[0] for line in file if line.strip()]
    return random.Random(seed).sample(texts, min(n, len(texts)))


def steps(texts: Sequence[str]) -> dict[str, Callable[[], object]]:
    """Return what is timed; the first is what the others are compared with."""
    parsed = [parse_smiles(text, POLICY) for text in texts]
    molecules = [p for p in parsed if isinstance(p, Molecule)]
    mols = [m.mol for m in molecules]
    return {
        "MolFromSmiles": lambda: [Chem.MolFromSmiles(text) for text in texts],
        "all of it": lambda: featurize_many(
            [p for p in (parse_smiles(text, POLICY) for text in texts) if isinstance(p, Molecule)]
        ),
        "parse_smiles": lambda: [parse_smiles(text, POLICY) for text in texts],
        "featurize_many": lambda: featurize_many(molecules),
        "  read_binary": lambda: read_binary(mols),
        "    ToBinary": lambda: [mol.ToBinary() for mol in mols],
        "  ask instead": lambda: [ask(mol) for mol in mols],
    }


def measure(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Return microseconds a molecule of every step."""
    total: dict[str, float] = {}
    with rdBase.BlockLogs():
        for start in range(0, len(texts), BLOCK):
            todo = steps(texts[start : start + BLOCK])
            best = dict.fromkeys(todo, float("inf"))
            for _ in range(rounds):
                for name, run in todo.items():
                    started = time.perf_counter()
                    run()  # freeing the result included
                    best[name] = min(best[name], time.perf_counter() - started)
            for name, seconds in best.items():
                total[name] = total.get(name, 0.0) + seconds
    return {name: 1e6 * seconds / len(texts) for name, seconds in total.items()}


def summary(micros: dict[str, float]) -> dict[str, Any]:
    """Return times and ratios; `beyond_parsing` is all that molscore adds to `MolFromSmiles`."""
    base = micros["MolFromSmiles"]
    added = micros["all of it"] - base
    return {
        "microseconds": {name.strip(): round(value, 1) for name, value in micros.items()},
        "ratios": {name.strip(): round(value / base, 3) for name, value in micros.items()},
        "beyond_parsing": round(added / base, 3),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the ratios and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("smiles", type=Path, help="one SMILES a line; may be gzipped")
    parser.add_argument("--molecules", type=int, default=4096, help="how many, drawn at random")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    args = parser.parse_args(arguments)
    described = machine()
    texts = read_smiles(args.smiles, args.molecules, args.seed)
    micros = measure(texts, args.rounds)
    result = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "machine": described,
        "rdkit": rdBase.rdkitVersion,
        "data": args.smiles.name,
        "molecules": len(texts),
        "rounds": args.rounds,
        **summary(micros),
    }
    args.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for name, value in micros.items():
        print(f"{name:16}{value:8.1f} us{value / micros['MolFromSmiles']:8.3f}")
    print(f"all that is added to MolFromSmiles: {result['beyond_parsing']:.3f}")


if __name__ == "__main__":
    main()

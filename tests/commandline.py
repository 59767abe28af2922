"""Running molscore as a process, and models whose predictions are known."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import handmade_bundle
import numpy as np

from molscore.bundle.structures import KnownStructures
from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target

MOLSCORE = Path(sys.executable).with_name("molscore")
TRAINED_ON = ("CCO", "c1ccccc1", "CC(=O)O")


class Result(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[str]:
        """Lines of stdout below the header."""
        return self.out.splitlines()[1:]


def run_process(
    *arguments: str | Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    **options: Any,
) -> Result:
    """Run molscore as a process of its own."""
    done = subprocess.run(
        [MOLSCORE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=os.environ | env if env is not None else None,
        cwd=cwd,
        check=False,
        timeout=120,
        **options,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Look until something has come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def structure_hashes(smiles: tuple[str, ...]) -> np.ndarray:
    molecules = [parse_smiles(s, ChemPolicy()) for s in smiles]
    keys = (structure_key(m) for m in molecules if isinstance(m, Molecule))
    return KnownStructures.of(keys).parts[b""]


def write_model(path: Path) -> Path:
    """Write a model of two experts for the target `y`; see `predicted`."""
    target = Target(name="y", unit="log10 mol/L", note="water")
    arrays = {"structures": structure_hashes(TRAINED_ON)}
    path.write_bytes(handmade_bundle.bundle_bytes((target,), arrays=arrays, name="hand"))
    return path


def write_two_target_model(path: Path) -> Path:
    """Write a model of a value `y` and a class `toxic`."""
    targets = (Target(name="y"), Target(name="toxic", kind="classification", classes=("no", "yes")))
    arrays = {"structures": structure_hashes(TRAINED_ON)}
    path.write_bytes(handmade_bundle.bundle_bytes(targets, arrays=arrays, name="two"))
    return path


def predicted(*symbols: str) -> float:
    """What the model of `write_model` predicts for these heavy atoms: the mean of its experts."""
    return float(np.mean([handmade_bundle.expected(list(symbols), expert=e) for e in (0, 1)]))


TRAINING_TABLE = "id,smiles,logS,acid\n" + "".join(
    f"{i},{'C' * (i % 12 + 1)}{tail},{0.5 - 0.4 * (i % 12) + bonus:.2f},{acid}\n"
    for i, (tail, bonus, acid) in enumerate(
        [("O", 0.5, "no"), ("C(=O)O", 0.8, "yes"), ("Cl", -0.6, "no"), ("N", 0.4, "no")] * 11
    )
)

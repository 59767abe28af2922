"""Adding a family is one file and one line, as the README says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIRST = '    "dmpnn": '


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the project with the README's family added to it."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Add a block", 1)[1]
    family, line = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)[:2]
    root = tmp_path_factory.mktemp("project")
    for name in ("molscore", "tests", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    (root / "molscore/nn/families/neighbours.py").write_text(family, encoding="utf-8")
    registry = root / "molscore/nn/registry.py"
    text = registry.read_text(encoding="utf-8")
    assert text.count(FIRST) == 1
    registry.write_text(text.replace(FIRST, line + FIRST), encoding="utf-8")
    return root


def run(copy: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_new_family_keeps_the_contract(copy):
    done = run(copy, "-m", "pytest", "tests/contract", "-k", "neighbours")
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\b[1-9]\d+ passed", done.stdout)


@pytest.mark.slow
def test_the_new_family_trains_exports_and_predicts(copy):
    table = copy / "table.csv"
    table.write_text("smiles,y\n" + "".join(f"{'C' * k}O,{k / 4}\n" for k in range(1, 25)))
    done = run(
        *(copy, "-m", "molscore", "train", "table.csv", "--block", "neighbours"),
        *("--epochs", "2", "--folds", "2", "--width", "16", "--output", "m.molscore"),
    )
    assert done.returncode == 0, done.stderr
    # Prediction knows the architecture by its graph alone.
    done = run(copy, "-m", "molscore", "predict", "table.csv", "--model", "m.molscore")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(",ok,") == 24

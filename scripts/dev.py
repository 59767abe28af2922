"""Set up molscore in a virtual environment of its own; run its demonstration and its tests.

    python3 scripts/dev.py setup           # .venv with everything, CPU torch included
    python3 scripts/dev.py demo            # set up, train on a sample table, predict
    python3 scripts/dev.py test [ARGS]     # set up, run all tests; ARGS go to pytest

Needs Python 3.11 to 3.13 with the venv module, and nothing else. MOLSCORE_VENV names another
folder than .venv. `make setup`, `make demo` and `make test` are the same commands.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
VENV: Final = ROOT / os.environ.get("MOLSCORE_VENV", ".venv")
SCRIPTS: Final = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON: Final = SCRIPTS / "python"

VERSIONS: Final = ((3, 11), (3, 12), (3, 13))
INPUTS: Final = ("pyproject.toml", "constraints.txt", "scripts/install_torch.py", "scripts/dev.py")
"""Files that decide what a set-up installs; a change in one of them repeats the set-up."""

USAGE: Final = "usage: dev.py setup | demo | test [PYTEST ARGUMENTS]"


def setup() -> None:
    """Create or update the environment; do nothing where it is up to date."""
    stamp = VENV / ".molscore-setup"
    wanted = fingerprint()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        print(f"setting up {VENV} with Python {sys.version.split()[0]}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False).returncode:
            shutil.rmtree(VENV, ignore_errors=True)  # it has a Python but no pip
            raise SystemExit(
                "`python -m venv` failed. On Debian and Ubuntu: apt-get install python3-venv"
            )
    run(PYTHON, "scripts/install_torch.py")
    run(PYTHON, "-m", "pip", "install", "-c", "constraints.txt", "-e", ".[train,boost,dev]")
    stamp.write_text(wanted)


def demo() -> None:
    """Train on sample_data/huuskonen.csv and predict sample_data/smiles.txt."""
    model, run_dir = "runs/huuskonen.molscore", "runs/huuskonen"
    Path(ROOT / "runs").mkdir(exist_ok=True)
    molscore = SCRIPTS / "molscore"
    table = "sample_data/huuskonen.csv"
    run(molscore, "train", table, "--output", model, "--run-dir", run_dir, "--force")
    run(molscore, "predict", "sample_data/smiles.txt", "--model", model)


def test(arguments: Sequence[str]) -> None:
    """Run all tests, the slow ones too."""
    run(PYTHON, "-m", "pytest", "-m", "slow or not slow", *arguments)


def run(*command: str | Path) -> None:
    """Run `command` in the project's folder without standard input; stop where it fails."""
    print("$", *(shown(part) for part in command), file=sys.stderr, flush=True)
    finished = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    if finished.returncode:
        raise SystemExit(finished.returncode)


def shown(part: str | Path) -> str:
    """Return `part` of a command as a user in the project's folder would write it."""
    if isinstance(part, Path) and part.is_relative_to(ROOT):
        return str(part.relative_to(ROOT))
    return f"'{part}'" if " " in str(part) else str(part)


def fingerprint() -> str:
    """Return a digest of everything that decides what a set-up installs."""
    digest = hashlib.sha256(str(os.environ.get("MOLSCORE_TORCH")).encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def other_python() -> str | None:
    """Return a Python of a supported version on the PATH, the newest first."""
    names = (f"python{major}.{minor}" for major, minor in reversed(VERSIONS))
    return next(filter(None, map(shutil.which, names)), None)


def main(arguments: Sequence[str]) -> int:
    """Run the named task and return the exit code."""
    task, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if task not in {"setup", "demo", "test"} or (rest and task != "test"):
        print(USAGE, file=sys.stderr)
        return 2
    if sys.version_info[:2] not in VERSIONS and not PYTHON.exists():
        python = other_python()
        if python is None:
            print("molscore needs Python 3.11, 3.12 or 3.13", file=sys.stderr)
            return 1
        return subprocess.run([python, __file__, *arguments], check=False).returncode
    setup()
    if task == "demo":
        demo()
    elif task == "test":
        test(rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

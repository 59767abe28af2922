"""Run the console blocks of the README, so that what it shows is what happens.

python scripts/readme_console.py --write   # put the real output below each command
python scripts/readme_console.py --check   # exit code 1 where a command fails or shows other text

A block starts with ```console; a line `$ COMMAND` is followed by its output. Standard error is
shown too, as a terminal would. Numbers are compared loosely: another type of CPU trains another
model in the last digits.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
ABSOLUTE, RELATIVE = 0.75, 0.1


def blocks(text: str) -> list[tuple[int, int]]:
    """Return the line ranges between ```console and ```."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line == "```console"]
    return [(i + 1, lines.index("```", i)) for i in starts]


def split_commands(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return (command, output lines) pairs of a block."""
    pairs: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        else:
            pairs[-1][1].append(line)
    return pairs


def run(command: str, folder: Path) -> list[str]:
    """Run a command as typed and return what it prints; stop where it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else []


def alike(shown: str, found: str) -> bool:
    """Return whether two lines agree, numbers loosely."""
    if re.sub(NUMBER, "#", _plain(shown)) != re.sub(NUMBER, "#", _plain(found)):
        return False
    pairs = zip(NUMBER.findall(_plain(shown)), NUMBER.findall(_plain(found)), strict=True)
    return all(abs(float(a) - float(b)) <= ABSOLUTE + RELATIVE * abs(float(a)) for a, b in pairs)


def same(shown: list[str], found: list[str]) -> bool:
    """Return whether two outputs agree, line by line or as sets of lines.

    Lines of processes that run side by side come in either order.
    """
    if len(shown) != len(found):
        return False
    return all(map(alike, shown, found)) or all(map(alike, sorted(shown), sorted(found)))


def _plain(line: str) -> str:
    """Blank out what differs from run to run: hashes, times, versions, padding."""
    line = re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", line)
    line = re.sub(r"\b\d+(\.\d+){2,}(\+\w+)?", "VERSION", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "TIME", line)
    return re.sub(r"\s+", " ", line).strip()


def rewrite(text: str, folder: Path) -> tuple[str, list[str]]:
    """Return the README with real output, and what differed."""
    lines, differences = text.split("\n"), []
    made: list[str] = []
    end_before = 0
    for start, end in blocks(text):
        made += lines[end_before:start]
        for command, shown in split_commands(lines[start:end]):
            found = run(command, folder)
            made += [f"$ {command}", *found]
            if not same(shown, found):
                differences.append("\n".join([f"$ {command}", "shown:", *shown, "found:", *found]))
        end_before = end
    return "\n".join(made + lines[end_before:]), differences


def main() -> int:
    """Write or check."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "sample_data", folder / "sample_data")
        made, differences = rewrite(text, folder)
    if sys.argv[1:] == ["--write"]:
        README.write_text(made, encoding="utf-8")
        return 0
    print("\n\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

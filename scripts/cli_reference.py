"""The command-line reference, made of the help texts themselves, so that it cannot drift.

python scripts/cli_reference.py                    # print it (Markdown)
python scripts/cli_reference.py --write README.md  # put it between the markers of a file
python scripts/cli_reference.py --check README.md  # exit code 1 when it is stale there
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

COMMANDS = ("train", "distill", "predict", "evaluate", "export", "inspect", "models", "featurize")
BEGIN = "<!-- command line: made by scripts/cli_reference.py -->"
END = "<!-- command line: end -->"


def help_text(*command: str) -> str:
    """Return what `molscore COMMAND --help` prints at a width of 100."""
    molscore = Path(sys.executable).with_name("molscore")
    done = subprocess.run(
        [molscore, *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    return done.stdout.strip("\n")


def reference() -> str:
    """Return the whole reference."""
    sections = [f"```text\n{help_text()}\n```\n"]
    sections += [
        f"### molscore {command}\n\n```text\n{help_text(command)}\n```\n" for command in COMMANDS
    ]
    return "\n".join(sections)


def with_reference(text: str) -> str:
    """Return `text` with the part between the markers made anew.

    Raises:
        ValueError: when the markers are not there, each once and in this order.
    """
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in old + after or END in before + after:
        raise ValueError(f"expected one {BEGIN!r} and one {END!r} behind it")
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def main() -> int:
    """Print, write or check the reference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", type=Path, metavar="FILE")
    action.add_argument("--check", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    path: Path | None = arguments.write or arguments.check
    if path is None:
        print(reference(), end="")
        return 0
    old = path.read_text(encoding="utf-8")
    new = with_reference(old)
    if arguments.write:
        path.write_text(new, encoding="utf-8")
    elif old != new:
        print(f"{path} is stale: run scripts/cli_reference.py --write {path}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

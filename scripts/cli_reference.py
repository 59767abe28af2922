"""Print the command-line reference, made of the help texts themselves (Markdown, to stdout)."""

import subprocess
import sys
from pathlib import Path

COMMANDS = ("train", "predict", "evaluate", "export", "inspect", "featurize")


def help_text(*command: str) -> str:
    """Return what `molscore COMMAND --help` prints at a width of 100."""
    molscore = Path(sys.executable).with_name("molscore")
    done = subprocess.run(
        [molscore, *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout.strip("\n")


def reference() -> str:
    """Return the whole reference."""
    sections = [f"```text\n{help_text()}\n```\n"]
    sections += [
        f"### molscore {command}\n\n```text\n{help_text(command)}\n```\n" for command in COMMANDS
    ]
    return "\n".join(sections)


if __name__ == "__main__":
    print(reference(), end="")

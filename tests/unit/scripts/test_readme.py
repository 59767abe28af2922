"""The README is true: its commands run and show what they print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_console_blocks_run_and_print_what_is_shown():
    done = subprocess.run(
        [sys.executable, "scripts/readme_console.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_python_block_runs(tmp_path):
    section = README.split("## From Python", 1)[1].split("\n## ", 1)[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pred_logS" in done.stdout


def test_options_named_in_the_text_exist():
    reference = README.split("<!-- command line: made", 1)[1]
    prose = README.replace(reference, "")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", prose))
    known = set(re.findall(r"--[a-z][a-z-]+", reference))
    others = {"--rm", "--target", "--index-url"}
    assert named - known - others == set()


def test_both_commands_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for name in ("demo", "test"):
        assert f"make {name} " in README
        assert re.search(rf"^(\w+ )*{name}( \w+)*:", makefile, flags=re.MULTILINE)


def test_files_named_in_the_text_exist():
    for name in re.findall(r"`((?:sample_data|scripts|benchmarks)/[\w./-]+)`", README):
        assert (ROOT / name).exists(), name

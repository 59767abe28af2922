"""What of the container can be checked without building it: entry point, prune, Dockerfile."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENTRYPOINT = ROOT / "docker" / "entrypoint.sh"
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.fixture
def enter(tmp_path):
    """Run the entry point with a molscore that prints its arguments, one in brackets each."""
    molscore = tmp_path / "molscore"
    molscore.write_text("#!/bin/sh\nprintf 'molscore'; printf ' [%s]' \"$@\"\nexit 3\n")
    molscore.chmod(0o755)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ENTRYPOINT, *arguments],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},  # no HOME, no USER
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], "molscore [--help]"),
        (["predict", "a b.smi", "--model", "m"], "molscore [predict] [a b.smi] [--model] [m]"),
        (["export", "x"], "molscore [export] [x]"),
        (["predict", "-", ""], "molscore [predict] [-] []"),
        # A runner that gives the whole command does not get molscore twice.
        (["molscore", "train", "t.csv"], "molscore [train] [t.csv]"),
    ],
)
def test_arguments_go_to_molscore_and_its_exit_code_comes_back(enter, arguments, expected):
    done = enter(*arguments)
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 3)


@pytest.mark.parametrize("shell", ["bash", "sh", "/bin/bash", "/bin/sh"])
def test_a_shell_is_run_as_workflow_engines_do(enter, tmp_path, shell):
    script = tmp_path / "command.run"
    script.write_text('test -n "$PATH"\necho "ran $1"\nfalse\necho unreachable\n')
    done = enter(shell, "-ue", str(script), "it")
    assert (done.stdout, done.returncode) == ("ran it\n", 1)


def test_programs_are_executed_in_place_of_the_entry_point(enter):
    assert enter("env", "A=1", "sh", "-c", "echo $A").stdout == "1\n"
    assert enter("/bin/echo", "hello").stdout == "hello\n"
    if shutil.which("ps"):
        assert "PID" in enter("ps").stdout
    assert enter("/no/such/program").returncode == 127


def test_a_missing_argument_list_is_molscore_alone(enter):
    assert enter().stdout.startswith("molscore")


def test_scripts_are_executable_posix_shell():
    for script in (ROOT / "docker").glob("*.sh"):
        assert os.access(script, os.X_OK)
        assert script.read_text().startswith("#!/bin/sh\n")
        assert subprocess.run(["sh", "-n", script], check=False).returncode == 0


def test_both_targets_are_there_the_small_one_is_the_default_and_nobody_is_root():
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE, flags=re.MULTILINE)
    names = [name for _, name in stages]
    assert {"runtime", "train"} <= set(names)
    assert stages[-1] == ("runtime", "")
    parents = {name: parent for parent, name in stages}
    assert parents["runtime"] == parents["train"] == "image"
    user = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, flags=re.MULTILINE)
    assert len(user) == 1
    assert user[0][0] != "0"
    assert DOCKERFILE.count("ARG BASE=") == 1


def test_the_runtime_never_sees_torch():
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    for stage in stages[1:]:
        name = re.match(r"\S+ AS (\S+)", stage)
        if name and name.group(1) in {"image", "runtime-files", "runtime"}:
            assert "torch" not in stage.lower()


def test_every_copied_file_exists_and_passes_the_ignore_file():
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE)
    sources = [source for line in copies for source in line.split()]
    assert "molscore" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source in allowed or str(Path(source).parent) in allowed, source


def test_telemetry_of_onnx_runtime_is_off():
    assert "ORT_DISABLE_TELEMETRY=1" in DOCKERFILE

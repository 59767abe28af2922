"""A prediction starts fast, quietly, and without torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from handmade_bundle import bundle_bytes

CODE = """
import sys
from molscore.bundle.reader import load_bundle
from molscore.predict.stream import predict_chunks
[result] = predict_chunks([["CCO"]], load_bundle("m.molscore"))
assert result.status == ["ok"], result.error
print([name for name in {watched} if name in sys.modules])
"""
# What a prediction has no use for, and what each would cost at start-up.
HEAVY = ("torch", "torch_geometric", "onnxscript", "pandas", "pyarrow", "sklearn", "scipy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.molscore").write_bytes(bundle_bytes())
    return tmp_path


def run(folder: Path, *prefix: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*prefix, sys.executable, "-c", CODE.format(watched=HEAVY)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=env or None,
        check=False,
    )


def test_a_prediction_imports_nothing_heavy_and_says_nothing(folder: Path) -> None:
    done = run(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset here")
def test_a_process_bound_to_one_cpu_is_quiet(folder: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    done = run(folder, "taskset", "-c", str(cpu))
    assert (done.returncode, done.stderr) == (0, "")


def test_no_home_no_user_no_writable_place(folder: Path) -> None:
    folder.chmod(0o555)
    try:
        done = run(folder, LANG="C", TMPDIR="/nonexistent", PATH=os.environ["PATH"])
    finally:
        folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_package_imports_no_engine() -> None:
    code = (
        "import sys, molscore.predict.stream; "
        "print([m for m in ('torch', 'onnxruntime', 'onnx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

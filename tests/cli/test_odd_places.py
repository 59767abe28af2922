"""Odd inputs and places: declared separators, names that are no text, pipes that do not block."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import MOLSCORE, TRAINING_TABLE, Result, run_process

LATIN = os.fsdecode(b"\xe9sol")


@pytest.fixture
def odd_name(tmp_path: Path) -> str:
    try:
        (tmp_path / LATIN).touch()
    except OSError:
        pytest.skip("the file system takes UTF-8 names alone")
    return LATIN


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
def test_the_separator_that_excel_declares(
    invoke: Callable[..., Result], model: Path, tmp_path: Path, mark: str
) -> None:
    path = tmp_path / "t.csv"
    lines = [["name", "smiles"], ["a", "CCO"], ["b", "c1ccccc1"]]
    path.write_text(f"sep={mark}\r\n" + "".join(mark.join(line) + "\r\n" for line in lines))
    done = invoke("predict", path, "--model", model)
    header, first, second = done.out.splitlines()
    assert header.startswith("name,smiles,pred_y")
    assert first.startswith("a,CCO,")
    assert second.startswith("b,c1ccccc1,")


@pytest.mark.slow
def test_a_model_and_a_table_whose_names_are_no_text(tmp_path: Path, odd_name: str) -> None:
    (tmp_path / f"{odd_name}.csv").write_text(TRAINING_TABLE)
    done = run_process(
        *("train", f"{odd_name}.csv", "--target", "logS", "--output", f"{odd_name}.molscore"),
        *("--width", "16", "--folds", "2", "--epochs", "1"),
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    told = run_process("inspect", "--model", f"{odd_name}.molscore", cwd=tmp_path)
    assert "\\udce9sol" in told.out


def test_an_output_whose_name_is_no_text(model: Path, tmp_path: Path, odd_name: str) -> None:
    (tmp_path / "in.smi").write_text("CCO\n")
    done = run_process(
        *("predict", "in.smi", "--model", model, "--output", f"{odd_name}.csv"), cwd=tmp_path
    )
    assert done.code == 0, done.err
    assert (tmp_path / f"{odd_name}.csv").exists()


def test_a_pipe_that_does_not_block_is_waited_for(model: Path) -> None:
    there, ours = os.pipe()
    os.set_blocking(there, False)
    process = subprocess.Popen(
        [MOLSCORE, "predict", "-", "--model", model], stdin=there, stdout=subprocess.PIPE
    )
    os.close(there)
    for _ in range(2):
        os.write(ours, b"CCO\n" * 5)
        time.sleep(1.0)
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(out.splitlines()) == 11


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1", "2"] * 10, "write 0 and 1"),
        (["0", "5"] * 10, "write 0 and 1"),
        (["1"] * 20, "there is nothing to learn"),
    ],
)
def test_classes_that_cannot_be_learned(
    invoke: Callable[..., Result], tmp_path: Path, cells: list[str], words: str
) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{'C' * (i + 1)}O,{cell}" for i, cell in enumerate(cells)]
    path.write_text("smiles,toxic\n" + "\n".join(rows) + "\n")
    done = invoke(
        *("train", path, "--task", "classification", "--target", "toxic"),
        *("--output", tmp_path / "m.molscore"),
    )
    assert done.code == 3
    assert words in done.err
    assert not (tmp_path / "m.molscore").exists()


@pytest.mark.slow
def test_measured_values_are_kept_as_they_stand(
    invoke: Callable[..., Result], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    values = [42, 25.3, 123, 0.1] * 5
    rows = [f"{'C' * (i + 1)}O,{value}" for i, value in enumerate(values)]
    path.write_text("smiles,ic50\n" + "\n".join(rows) + "\n")
    done = invoke(
        *("train", path, "--transform", "log10", "--width", "16", "--folds", "2"),
        *("--epochs", "1", "--output", tmp_path / "m.molscore", "--workers", "1"),
    )
    assert done.code == 0, done.err
    lines = (tmp_path / "m-run" / "oof.csv").read_text().splitlines()[1:]
    assert [float(line.split(",")[2]) for line in lines] == values

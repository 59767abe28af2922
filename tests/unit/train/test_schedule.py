"""Which schedule holds where the user asked for none."""

from pathlib import Path

import pytest
from commandline import run_process

from molscore import train
from molscore.bundle.reader import load_bundle
from molscore.train.config import CLASSES, FINE_TUNING, TrainConfig, settings

TINY = {"folds": 2, "width": 8, "plan": "1x1@1", "batch_size": 64, "workers": 1}
MOLECULES = ["C" * k + end for k in range(1, 9) for end in ("O", "N", "Cl")]


def table(path: Path, *columns: str) -> Path:
    cells = {"number": lambda i: f"{i / 7:.2f}", "class": lambda i: "yn"[i % 2]}
    rows = [",".join([s, *(cells[c](i) for c in columns)]) for i, s in enumerate(MOLECULES)]
    path.write_text("\n".join([",".join(["smiles", *columns]), *rows]) + "\n")
    return path


def epochs(bundle: Path) -> int:
    return int(load_bundle(bundle).manifest.training["config"]["epochs"])


@pytest.mark.parametrize(
    ("columns", "options", "wanted"),
    [
        (["class"], {}, CLASSES["epochs"]),
        (["class"], {"epochs": 3}, 3),
        (["number"], {}, TrainConfig.epochs),
        (["class", "number"], {"target": ["class", "number"]}, TrainConfig.epochs),
    ],
    ids=["classes", "classes, given", "numbers", "both"],
)
def test_classes_alone_train_shorter_unless_given(tmp_path, columns, options, wanted) -> None:
    path = table(tmp_path / "t.csv", *columns)
    result = train(path, output=tmp_path / "m.molscore", **TINY | options)
    assert epochs(result.bundle) == wanted


def test_trees_of_classes_have_no_epochs_to_shorten(tmp_path) -> None:
    pytest.importorskip("catboost", reason="the [boost] extra is not installed")
    path = table(tmp_path / "t.csv", "class")
    options = {"block": "catboost", "iterations": 3, "folds": 2, "workers": 1}
    assert train(path, output=tmp_path / "m.molscore", **options).metrics["class"]


def test_a_default_that_stands_on_the_command_line_is_obeyed(tmp_path) -> None:
    path = table(tmp_path / "t.csv", "class")
    common = ["--folds", "2", "--width", "8", "--plan", "1x1@1", "--batch-size", "64"]
    for name, extra in (("a", []), ("b", ["--epochs", str(TrainConfig.epochs)])):
        output = tmp_path / f"{name}.molscore"
        assert run_process("train", path, *common, *extra, "--output", output).code == 0
    assert epochs(tmp_path / "a.molscore") == CLASSES["epochs"]
    assert epochs(tmp_path / "b.molscore") == TrainConfig.epochs


def test_a_model_to_start_from_decides_before_the_task_does() -> None:
    assert (
        settings(starts=True, classes=True) == settings(starts=True, classes=False) == FINE_TUNING
    )
    assert settings(starts=False, classes=True) == CLASSES
    assert settings(starts=False, classes=False) == {}

"""The training-time benchmark, with stand-ins for the two programs."""

import argparse
import csv
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load():
    path = ROOT / "benchmarks" / "train_time" / "measure.py"
    spec = importlib.util.spec_from_file_location("measure_train_time", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


measure = load()

N_ROWS, N_FOLDS = 50, 5

# Both predict the row's value plus a constant, so that the RMSE of every fold is known.
CHEMPROP = """
import csv, json, pathlib, sys
arg = dict(zip(sys.argv[2::2], sys.argv[3::2]))
rows = list(csv.DictReader(open(arg["--data-path"])))
for i, split in enumerate(json.load(open(arg["--splits-file"]))):
    folder = pathlib.Path(arg["--output-dir"], f"replicate_{i}", "model_0")
    folder.mkdir(parents=True)
    with open(folder / "test_predictions.csv", "w") as file:
        print("smiles,y", file=file)
        for row in split["test"]:
            print(rows[row]["smiles"], float(rows[row]["y"]) + 2, sep=",", file=file)
"""
MOLSCORE = """
import csv, pathlib, sys
assert sys.argv[1] == "train"
rows = list(csv.DictReader(open(sys.argv[2])))
arg = dict(zip(sys.argv[3:-1:2], sys.argv[4::2]))
folds = list(csv.DictReader(open(arg["--folds-file"])))
folder = pathlib.Path(arg["--run-dir"])
folder.mkdir()
with open(folder / "oof.csv", "w") as file:
    print("row,fold,target,prediction", file=file)
    for fold, row in zip(folds, rows):
        print(fold["row"], fold["fold"], row["y"], float(row["y"]) + 1, sep=",", file=file)
"""


@pytest.fixture
def arguments(tmp_path) -> argparse.Namespace:
    data, folds = tmp_path / "data.csv", tmp_path / "folds.csv"
    smiles = ["C" * (1 + row) + " " for row in range(N_ROWS)]
    measure.write_csv(data, ["name", "v", "smi"], [["x", r / 7, s] for r, s in enumerate(smiles)])
    measure.write_csv(folds, ["row", "fold"], [[r, (r * 3) % N_FOLDS] for r in range(N_ROWS)])
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python").symlink_to(sys.executable)
    for name, code in (("chemprop", CHEMPROP), ("molscore", MOLSCORE)):
        (bin_folder / name).write_text(f"#!{sys.executable}\n{code}")
        (bin_folder / name).chmod(0o755)
    return measure.parse_arguments(
        [
            *(str(data), str(folds), "--smiles-column", "smi", "--target", "v", "--rounds", "2"),
            *("--chemprop", str(bin_folder / "chemprop")),
            *("--molscore", str(bin_folder / "molscore")),
        ]
    )


def test_splits_cover_every_row_once_and_validation_is_a_tenth_of_training(arguments):
    table = measure.read_table(arguments.data, arguments.folds, "smi", "v")
    assert table.smiles[2] == "CCC"
    splits = measure.chemprop_splits(table, seed=0)
    assert len(splits) == N_FOLDS
    for fold, split in enumerate(splits):
        assert split["test"] == [r for r in range(N_ROWS) if (r * 3) % N_FOLDS == fold]
        assert sorted(split["train"] + split["val"] + split["test"]) == list(range(N_ROWS))
        assert len(split["val"]) == 4
    assert splits == measure.chemprop_splits(table, seed=0)
    assert splits != measure.chemprop_splits(table, seed=1)


def test_both_programs_are_run_on_the_same_folds_and_scored_alike(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "versions", lambda program, packages: {"of": Path(program).name})
    work = tmp_path / "work"
    work.mkdir()
    result = measure.measure(arguments, work)
    assert result["molscore"]["fold_rmse"] == [1.0] * N_FOLDS
    assert result["chemprop"]["fold_rmse"] == [2.0] * N_FOLDS
    assert len(result["molscore"]["rounds"]) == 2
    assert result["wall_ratio"] == pytest.approx(
        result["molscore"]["wall_s"] / result["chemprop"]["wall_s"], abs=1e-3
    )
    assert result["protocol"]["rows"] == N_ROWS
    assert result["machine"]["cores"] == len(os.sched_getaffinity(0))
    json.dumps(result, allow_nan=False)
    assert "1.000 1.000" in measure.report(result)


def test_versions_come_from_the_environment_of_the_program():
    found = measure.versions(sys.executable, ["numpy"])
    assert found["numpy"].count(".") >= 1


def test_a_failing_program_stops_the_benchmark_and_shows_its_log(tmp_path):
    code = "print('why it failed'); raise SystemExit(3)"
    with pytest.raises(SystemExit, match=r"exit code 3(.|\n)*why it failed"):
        measure.timed([sys.executable, "-c", code], tmp_path / "log")


def test_incomplete_folds_are_refused(arguments, tmp_path):
    with arguments.folds.open() as file:
        rows = list(csv.reader(file))
    short = tmp_path / "short.csv"
    measure.write_csv(short, rows[0], rows[1:-1])
    with pytest.raises(SystemExit, match="a fold for each of 50 rows"):
        measure.read_table(arguments.data, short, "smi", "v")

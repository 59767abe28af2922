"""The benchmark of the paper's tables: what is trained, what is compared, what must not leak."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from molscore.chem.policy import ChemPolicy
from molscore.data.targets import read_labelled
from molscore.train.listing import read_listing
from molscore.train.prepare import prepare

ROOT = Path(__file__).resolve().parents[3]
AQSOLDB = ROOT / "sample_data" / "aqsoldb.csv"


@pytest.fixture(scope="module")
def modules():
    """The scripts `cells` and `tables`, which import each other by plain names."""
    pytest.importorskip("matplotlib", reason="the tables need the [bench] extra")
    folder = str(ROOT / "benchmarks" / "esol")
    sys.path.insert(0, folder)
    try:
        import cells
        import tables
    finally:
        sys.path.remove(folder)
    yield cells, tables
    for name in ("cells", "tables", "run"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_a_model_to_start_from_has_seen_nothing_of_esol(shared_data):
    esol = read_listing(shared_data / "esol.csv")
    keys, _ = esol.read(ChemPolicy())
    settings = {"policy": ChemPolicy(), "split": "random", "n_folds": 1, "seed": 0, "workers": 1}
    table = read_labelled(AQSOLDB, targets=["logS"])
    everything = prepare(table, **settings, descriptors=False)
    assert len(keys & set(everything.keys)) > 1000  # or leaving them out would prove nothing
    rest = prepare(table, **settings, descriptors=False, exclude=keys)
    assert not keys & set(rest.keys)
    assert set(rest.keys) == set(everything.keys) - keys


def test_every_row_has_a_name_of_its_own(modules):
    cells, _ = modules
    for table in cells.TABLES:
        assert len(set(table.rows)) == len(table.rows), table.name
    keys = [cell.key for table in cells.TABLES[:2] for cell in table.cells()]
    assert "esol dmpnn skip05 seed=2 fold=4" in keys


def test_a_plan_that_has_a_name_is_trained_once(modules):
    cells, _ = modules
    by_name = {table.name: table for table in cells.TABLES}
    assert "dmpnn score" in by_name["dt"].rows
    assert "dmpnn native" in by_name["depth"].rows


def write(path, lines):
    head = ["dataset", "model", "seed", "fold", "rmse", "mae", "roc_auc", "parameters", "seconds"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *lines])


def test_a_row_is_made_of_whole_seeds_and_compared_fold_by_fold(modules, tmp_path, monkeypatch):
    _, tables = modules
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 5)), rng.random((3, 5))
    lines = [["esol", "a", s, f, a[s, f], 0, "", 7, 1] for s in range(2) for f in range(5)]
    lines += [["esol", "b", s, f, b[s, f], 0, "", 7, 1] for s in range(3) for f in range(5)]
    lines += [["esol", "a", 2, 0, 0.1, 0, "", 7, 1]]  # a third seed has only begun
    write(tmp_path / "cells.csv", lines)
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "cells.csv")
    rows = tables.read_rows()
    np.testing.assert_allclose(rows["esol", "a"].rmse, a)
    assert rows["esol", "b"].rmse.shape == (3, 5)
    wanted = stats.ttest_rel(a.mean(axis=0), b[:2].mean(axis=0)).confidence_interval(0.95)
    difference = (a.mean(axis=0) - b[:2].mean(axis=0)).mean()
    said = f"{difference:+.3f} [{wanted.low:+.3f}, {wanted.high:+.3f}]"
    assert tables.paired(rows["esol", "a"], rows["esol", "b"]) == said
    assert tables.difference(rows, "esol", "a", "nobody") == ""


def test_of_classes_more_is_better(modules, tmp_path, monkeypatch):
    cells, tables = modules
    lines = [["b3db", "dmpnn score", 0, f, "", "", 0.88 + 0.01 * f, 7, 1] for f in range(5)]
    lines += [["b3db", "catboost", 0, f, "", "", 0.8, 0, 1] for f in range(5)]
    write(tmp_path / "cells.csv", lines)
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "cells.csv")
    table = next(t for t in cells.TABLES if t.dataset == "b3db")
    best, other = tables.lines_of(table, tables.read_rows())
    assert (best[0], best[1], other[0], other[1]) == ("dmpnn score", "0.900", "catboost", "0.800")
    assert "ROC-AUC" in tables.head_of(table, is_auc=True)

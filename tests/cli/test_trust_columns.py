"""Intervals, domain and neighbours on the command line."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Result, run_process
from trusting_bundle import trusting_bytes

OURS = [
    *("pred_y", "pred_y_sd", "pred_y_lo", "pred_y_hi"),
    *("similarity", "in_domain", "domain_note", "status", "error"),
]


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trusting") / "t.molscore"
    path.write_bytes(trusting_bytes())
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("smiles,y\nCCO,0.1\nCC[Si],5\nbad,1\nCCCCCCO,30\n")
    return path


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_columns_and_their_order(
    invoke: Callable[..., Result], trusting: Path, table: Path
) -> None:
    done = invoke("predict", table, "--model", trusting, "--quiet")
    assert done.out.splitlines()[0].split(",") == ["smiles", "y", *OURS]
    first, odd, bad, _ = read(done.out)
    assert float(first["pred_y_hi"]) - float(first["pred_y"]) == pytest.approx(6, abs=1e-4)
    assert (first["similarity"], first["in_domain"]) == ("1", "yes")
    assert odd["in_domain"] == "no"
    assert {bad[name] for name in OURS[:7]} == {""}


def test_each_part_can_be_left_out(
    invoke: Callable[..., Result], trusting: Path, table: Path
) -> None:
    done = invoke("predict", table, "--model", trusting, "--interval", "0", "--no-domain")
    assert done.out.splitlines()[0] == "smiles,y,pred_y,pred_y_sd,status,error"


@pytest.mark.parametrize("option", [("--interval", "1"), ("--neighbours", "101")])
def test_a_share_is_below_one(
    invoke: Callable[..., Result], trusting: Path, table: Path, option: tuple[str, str]
) -> None:
    done = invoke("predict", table, "--model", trusting, *option)
    assert done.code == 2
    assert option[0].strip("-") in done.err


def test_jsonl_has_numbers_and_nulls(
    invoke: Callable[..., Result], trusting: Path, table: Path
) -> None:
    done = invoke(
        *("predict", table, "--model", trusting, "--output-format", "jsonl", "--neighbours", "1")
    )
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows[0]["neighbour_1"] == "CCO"
    assert rows[0]["neighbour_1_y"] == 0.0
    assert rows[0]["similarity"] == 1.0
    assert rows[2]["similarity"] is None
    assert rows[2]["pred_y_lo"] is None


def test_an_earlier_answer_is_replaced(
    invoke: Callable[..., Result], trusting: Path, table: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    invoke("predict", table, "--model", trusting, "--output", first, "--neighbours", "2")
    invoke("predict", first, "--model", trusting, "--output", second, "--interval", "0")
    names = second.read_text().splitlines()[0].split(",")
    assert names == [
        *("smiles", "y", "pred_y", "pred_y_sd", "similarity", "in_domain", "domain_note"),
        *("status", "error"),
    ]


def test_parquet_has_numbers(
    invoke: Callable[..., Result], trusting: Path, table: Path, tmp_path: Path
) -> None:
    import pandas as pd

    invoke("predict", table, "--model", trusting, "--output", tmp_path / "o.parquet")
    frame = pd.read_parquet(tmp_path / "o.parquet")
    assert frame.similarity.dtype == frame.pred_y_lo.dtype == "float64"


def test_another_share_cannot_go_on(
    invoke: Callable[..., Result], trusting: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.csv"
    assert invoke("predict", table, "--model", trusting, "--output", out).code == 0
    done = invoke(
        *("predict", table, "--model", trusting, "--output", out, "--resume", "--interval", "0.99")
    )
    assert done.code == 2


def test_evaluate_tells_coverage_and_domain(
    invoke: Callable[..., Result], trusting: Path, table: Path
) -> None:
    done = invoke("evaluate", table, "--model", trusting)
    assert "y, unseen: 90% intervals hold 66.7% of the values" in done.out
    assert "y, unseen: inside the domain 2 rows" in done.out
    told = json.loads(invoke("evaluate", table, "--model", trusting, "--json").out)
    assert told["intervals"]["y"]["unseen"]["n"] == 3
    assert told["interval_level"] == 0.9
    assert set(told["domain"]["y"]) == {"inside", "outside"}


def test_inspect_tells_what_is_there(invoke: Callable[..., Result], trusting: Path) -> None:
    done = invoke("inspect", "--model", trusting)
    assert "structures carried: 5" in done.out
    assert "intervals: y" in done.out


def test_nothing_need_be_trained(tmp_path: Path) -> None:
    done = run_process("predict", "-", stdin=b"CCO\n[U]\n", cwd=tmp_path)
    assert done.code == 0
    first, uranium = read(done.out)
    assert -1 < float(first["pred_logS"]) < 3
    assert float(first["pred_logS_lo"]) < float(first["pred_logS"]) < float(first["pred_logS_hi"])
    assert "element U" in uranium["domain_note"]
    listed = run_process("models", cwd=tmp_path)
    assert listed.out.splitlines()[1].split()[:4] == ["aqsol", "logS", "log10", "mol/L"]
    named = run_process("predict", "-", "--model", "aqsol", stdin=b"CCO\n[U]\n", cwd=tmp_path)
    assert named.out == done.out


def test_evaluate_tells_of_a_table_that_is_all_outside(
    invoke: Callable[..., Result], trusting: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\n[U],0.1\n[Pu],5\n")
    done = invoke("evaluate", path, "--model", trusting)
    assert "y, unseen: inside the domain 0 rows; outside the domain 2 rows" in done.out

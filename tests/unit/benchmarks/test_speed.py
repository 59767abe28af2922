"""The speed benchmark, with commands that take known time and memory."""

import sys

import pytest

from benchmarks.speed import measure


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results.csv")
    return tmp_path


def case(name, code, rows=10, part="peers"):
    return measure.Case(part, name, rows, 2, (sys.executable, "-c", code))


def test_memory_of_the_largest_process_and_how_it_ended(kept):
    child = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = b\"a\" * 150_000_000'])"
    )
    measure.take(
        [case("small", "pass"), case("large", child), case("bad", "import sys; sys.exit(3)")],
        rounds=2,
        work=kept,
        keep=measure.keep,
    )
    small, large, bad = measure.read_results()
    assert float(small["peak_mb"]) < 100 < 150 <= float(large["peak_mb"]) < 300
    assert [r["status"] for r in (small, large, bad)] == ["ok", "ok", "exit 3"]
    assert float(small["per_second"]) == pytest.approx(10 / float(small["seconds"]), rel=0.5)
    assert float(small["spread"]) >= 0.0


def test_tables_give_ratios_of_equal_workers(kept):
    row = {"part": "peers", "rows": "10", "seconds": "1", "spread": "", "peak_mb": "9"}
    row |= {"status": "ok"}
    lines = [
        row | {"name": "RDKit parsing alone", "workers": "2", "per_second": "1000"},
        row | {"name": "RDKit parsing alone", "workers": "1", "per_second": "500"},
        row | {"name": "five experts", "workers": "1", "per_second": "100"},
        row | {"name": "chemprop, one model", "workers": "2", "per_second": "50"},
    ]
    text = measure.tables(lines).splitlines()
    assert "| five experts | 10 | 1 | 1 |  | 100 | 9 | ok | 0.200 | 2.000 |" in text
    assert len({line.count("|") for line in text if line.startswith("|")}) == 1

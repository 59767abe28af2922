"""The reading-time benchmark, tried out on a few molecules; no time is judged."""

import gzip
import json

import pytest

from benchmarks.reading_time import measure


@pytest.mark.parametrize("suffix", [".smi", ".smi.gz"])
def test_it_measures_every_step(tmp_path, capsys, suffix):
    path, output = tmp_path / f"few{suffix}", tmp_path / "results.json"
    text = "CCO ethanol\nc1ccccc1\n\nN[C@@H](C)C(=O)O\n"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    measure.main([str(path), "--rounds", "1", "--output", str(output)])
    result = json.loads(output.read_text())
    assert result["molecules"] == 3
    assert result["ratios"]["MolFromSmiles"] == 1
    assert set(result["ratios"]) == set(result["microseconds"])
    assert all(value > 0 for value in result["microseconds"].values())
    printed = capsys.readouterr().out
    assert all(name in printed for name in result["ratios"])


def test_what_is_added_counts_parsing_beyond_rdkits_own():
    micros = {"MolFromSmiles": 100.0, "all of it": 140.0}
    assert measure.summary(micros)["beyond_parsing"] == 0.4

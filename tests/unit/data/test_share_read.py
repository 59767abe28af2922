"""How many rows a table may have, judged by what is read of it."""

import gzip
import io
import sys
from itertools import islice
from pathlib import Path

import pytest

from molscore.data.tables import TableOptions, open_table

N = 60_000


def lines() -> bytes:
    return b"smiles,id\n" + b"".join(b"%s,%d\n" % (b"C" * (i % 30 + 1), i) for i in range(N))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_an_estimate_from_the_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(lines()) if name.endswith(".gz") else lines())
    with open_table(path) as table:
        assert len(list(islice(table, 2_000))) == 2_000
        # Early on, what is unpacked ahead weighs more.
        assert table.estimate_rows(2_000) == pytest.approx(N, rel=0.4)
        assert len(list(islice(table, 28_000))) == 28_000
        assert table.estimate_rows(30_000) == pytest.approx(N, rel=0.1)
        assert len(list(table)) == N - 30_000
        assert table.estimate_rows(N) == N


def test_no_estimate_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines())))
    with open_table("-", TableOptions(format="csv")) as table:
        assert next(iter(table)).fields[1] == "0"
        assert table.estimate_rows(1) is None

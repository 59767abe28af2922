"""Descriptors by several processes."""

import subprocess
import sys

import pytest

from molscore.chem import describing
from molscore.chem.describing import SERIAL_MOLECULES, describe_many, describe_stream
from molscore.chem.descriptors import compute_descriptors
from molscore.chem.molecule import Molecule
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.errors import InputError, MolscoreError

POLICY = ChemPolicy()
SMILES = [
    *("CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(=O)Nc1ccc(O)cc1 |c:1|", "C[C@H](N)C(=O)O"),
    "C[Si](C)C",
]


def molecules(n: int) -> list[Molecule]:
    parsed = [parse_smiles(SMILES[i % len(SMILES)], POLICY, i) for i in range(n)]
    return [m for m in parsed if isinstance(m, Molecule)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_processes_changes_no_bit(workers):
    many = molecules(SERIAL_MOLECULES + 200)
    found = describe_many(many, POLICY, workers)
    assert found.tobytes() == compute_descriptors(many).tobytes()


def test_no_molecule_gives_no_row():
    assert describe_many([], POLICY, 2).shape == (0, 217)


def test_few_molecules_start_no_process(monkeypatch):
    monkeypatch.setattr(describing, "WorkerPool", None)
    assert len(describe_many(molecules(SERIAL_MOLECULES // 2), POLICY, 2)) == SERIAL_MOLECULES // 2


def test_the_first_block_is_answered_before_more_is_read():
    def blocks():
        yield molecules(3)
        raise AssertionError("read too far")

    assert next(describe_stream(blocks(), POLICY, 2)).shape == (3, 217)


def test_an_empty_block_keeps_its_place():
    blocks = [molecules(2), [], molecules(SERIAL_MOLECULES + 1), [], molecules(1)]
    assert [len(v) for v in describe_stream(blocks, POLICY, 2)] == [len(b) for b in blocks]


def test_blocks_without_molecules_are_not_hoarded():
    n_read = 0

    def blocks():
        nonlocal n_read
        for _ in range(1000):
            n_read += 1
            yield []

    described = describe_stream(blocks(), POLICY, 2)
    for _ in range(3):
        assert next(described).shape == (0, 217)
    assert n_read < 50
    described.close()


def test_a_molecule_that_another_process_cannot_read_is_no_silent_gap():
    answer = describing.serve(POLICY.to_dict())
    with pytest.raises(MolscoreError, match="'C1CC' was a molecule and is none"):
        answer({"smiles": ["CCO", "C1CC"], "rows": [0, 1]})


def test_a_killed_process_is_told_with_its_rows(monkeypatch):
    many = molecules(SERIAL_MOLECULES + 200)
    command = "import os; os.kill(os.getpid(), 9)"
    monkeypatch.setattr("molscore.processes.pool._START", command)
    with pytest.raises(MolscoreError, match=r"killed by SIGKILL while describing rows \d+ to \d+"):
        describe_many(many, POLICY, 2)


def test_describing_needs_no_torch():
    code = "import sys, molscore.chem.describing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_molecule_that_has_no_descriptors_is_named(monkeypatch, workers):
    whole = describing.compute_descriptors

    def odd(block):
        if any(m.smiles == "CCO" and m.row == 6 for m in block):
            raise RuntimeError("odd")
        return whole(block)

    monkeypatch.setattr(describing, "compute_descriptors", odd)
    with pytest.raises(InputError, match=r"row 7: the descriptors of 'CCO' .*odd"):
        describe_many(molecules(20), POLICY, workers)

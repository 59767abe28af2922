"""What is said beside the predictions of a chunk, whatever is among its molecules."""

import numpy as np
from numpy.typing import NDArray

from molscore.chem.fingerprints import fingerprint_many
from molscore.errors import MolscoreError
from molscore.predict.core import ChunkResult, ReadChunk
from molscore.predict.engine import OUT_OF_MEMORY, is_out_of_memory
from molscore.trust.judge import Judge


def judge_read(read: ReadChunk, judge: Judge, result: ChunkResult) -> None:
    """Fill in intervals and further cells of the rows that have a molecule.

    Args:
        read: the molecules.
        judge: of the model that predicted them.
        result: its predictions.
    """
    blank = [None] * len(judge.extras)
    result.extras[:] = [list(blank) for _ in result.extras]
    if not read.molecules or not (judge.extras or any(judge.intervals)):
        return
    _judge(read, judge, result, np.arange(len(read.molecules)))


def _judge(read: ReadChunk, judge: Judge, result: ChunkResult, part: NDArray[np.int64]) -> None:
    """Judge some of the molecules at once; where that fails, one by one, and leave out culprits."""
    whole = len(part) == len(read.molecules)
    chosen = read.molecules if whole else [read.molecules[i] for i in part]
    rows = np.array([row for row, _ in chosen])
    molecules = [molecule for _, molecule in chosen]
    try:
        verdict = judge.judge(
            molecules,
            read.packed if whole else read.packed.take(part),
            _fingerprints(read, part) if judge.takes_fingerprints else None,
            result.values[rows],
        )
    except MolscoreError:
        raise
    except Exception as error:  # noqa: BLE001 (one odd molecule must not stop the table)
        if is_out_of_memory(error):
            raise MolscoreError(OUT_OF_MEMORY) from None
        if len(part) > 1:
            for i in part:
                _judge(read, judge, result, np.array([i]))
        return
    result.lower[rows], result.upper[rows] = verdict.lower, verdict.upper
    for row, cells in zip(rows, verdict.extras, strict=True):
        result.extras[row] = cells


def _fingerprints(read: ReadChunk, part: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the fingerprints of some molecules; those of all are kept for other models."""
    if read.fingerprints:
        return read.fingerprints[0][part]
    made = fingerprint_many([read.molecules[i][1] for i in part])
    if len(part) == len(read.molecules):
        read.fingerprints.append(made)
    return made

"""Morgan fingerprints as packed bits, to find the nearest molecules of a training set."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rdkit import DataStructs

from molscore.chem.molecule import Molecule

N_BITS: Final = 1024

N_BYTES: Final = N_BITS // 8
_RADIUS: Final = 2


def fingerprint_many(molecules: Sequence[Molecule]) -> NDArray[np.uint8]:
    """Return Morgan fingerprints of radius 2, uint8 [n, N_BYTES], the lowest bit first.

    Their bits also count: an environment sets one bit more where it occurs twice, four and eight
    times. Without that, octane and eicosane would be the same.

    Source: Rogers and Hahn (2010), doi 10.1021/ci100050t; RDKit `GetMorganGenerator`.
    """
    make, text = _generator().GetFingerprint, DataStructs.BitVectToBinaryText
    packed = b"".join(text(make(molecule.mol)) for molecule in molecules)
    return np.frombuffer(packed, dtype=np.uint8).reshape(len(molecules), N_BYTES)


@cache
def _generator() -> Any:
    from rdkit.Chem import rdFingerprintGenerator  # noqa: PLC0415 (a model may need none)

    return rdFingerprintGenerator.GetMorganGenerator(
        radius=_RADIUS, fpSize=N_BITS, countSimulation=True
    )

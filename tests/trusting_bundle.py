"""A bundle made by hand that says how far to trust it."""

from typing import Any

import handmade_bundle
import numpy as np

from molscore.bundle.reader import Bundle, parse_bundle
from molscore.chem.atom_kinds import atom_kinds
from molscore.chem.fingerprints import fingerprint_many
from molscore.data.targets import Target
from molscore.stats.difficulty import Difficulty
from molscore.trust.features import FEATURES, SHAPE
from molscore.trust.stored import Interval, Structures, Trust
from tests.molecules import molecule

KNOWN = ("CCO", "c1ccccc1", "CC(=O)O", "CCCCCCO", "CC(=O)[O-]")
"""Structures it was trained on; their measured values are 0, 1, 2, 3, 4."""

TARGETS = (Target(name="y", unit="log10 mol/L"),)


def trust(n_targets: int = 1, *, structures: bool = True, threshold: float = 0.3) -> Trust:
    """Intervals of half width 2 times the number of heavy atoms, at any level up to 0.95."""
    molecules = [molecule(s) for s in KNOWN]
    values = np.repeat(np.arange(len(KNOWN), dtype=np.float32)[:, None], n_targets, axis=1)
    column = (FEATURES if structures else SHAPE).index("atoms")
    # log(scale) = log(atoms) at 1 to 100 atoms, by steps fine enough.
    atoms = np.arange(1.0, 101.0)
    steps = Difficulty(
        intercept=0.0,
        feature=np.full(99, column),
        start=atoms[:-1],
        end=atoms[1:],
        climb=np.diff(np.log(atoms)),
    )
    return Trust(
        atoms=atom_kinds(molecules),
        structures=Structures(
            fingerprints=fingerprint_many(molecules),
            values=values,
            smiles=KNOWN,
            threshold=threshold,
        )
        if structures
        else None,
        intervals=(Interval(steps, np.full(50, 2.0)),) * n_targets,
    )


def trusting_bytes(targets: tuple[Target, ...] = TARGETS, **changes: Any) -> bytes:
    """Return the bytes of a bundle with what `trust` makes."""
    arrays = {**trust(len(targets), **changes).to_arrays()}
    return handmade_bundle.bundle_bytes(targets, arrays=arrays, name="hand")


def trusting(targets: tuple[Target, ...] = TARGETS, **changes: Any) -> Bundle:
    """Return it loaded."""
    return parse_bundle(trusting_bytes(targets, **changes), where="hand.molscore")

"""What a bundle carries to say how far its predictions can be trusted: arrays under `trust/`.

trust/atoms           int64 [m, 2], atomic number and charge of every kind of atom learned from
trust/fingerprints    uint8 [n, 128], one structure a row; this and what follows to `smiles` only
                      where the bundle may carry structures
trust/values          float32 [n, n_targets], measured, in the unit the model learns; NaN for none
trust/smiles          uint8, UTF-8, one structure a line
trust/threshold       float64 [1], the similarity below which a molecule is out of reach
trust/T/scores        float64 [r], for target number T: held-out residuals over their scale, sorted
trust/T/scale         float64 [1], intercept of the scale's logarithm
trust/T/steps         float64 [s, 4], feature, start, end and climb of each step
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import Bundle
from molscore.bundle.tensors import Arrays
from molscore.chem.atom_kinds import AtomKind, kinds_to_array
from molscore.chem.fingerprints import N_BYTES
from molscore.errors import BundleError
from molscore.stats.conformal import conformal_quantile
from molscore.stats.difficulty import Difficulty
from molscore.trust.features import FEATURES, SHAPE

PREFIX: Final = "trust/"
MAX_STRUCTURES: Final = 20_000
"""Structures a model carries; of more, a sample. A search takes a time in proportion."""

MAX_STEPS: Final = 1_000
MAX_ATOM_KINDS: Final = 5_000
_STRUCTURES: Final = ("fingerprints", "values", "smiles", "threshold")
_OF_TARGET: Final = ("scores", "scale", "steps")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """How wide the interval of a target is.

    Attributes:
        difficulty: the scale of the residuals.
        scores: float64 [r], sizes of the held-out residuals over their scale, sorted.
    """

    difficulty: Difficulty
    scores: Floats

    def half_widths(self, features: Floats, level: float) -> Floats:
        """Return half of each interval [n], in the unit the model learns.

        Infinite where there are too few scores for the level.
        """
        return conformal_quantile(self.scores, level) * self.difficulty.scale(features)


@dataclass(frozen=True, eq=False)
class Structures:
    """The structures a model learned from, each once.

    Attributes:
        fingerprints: uint8 [n, N_BYTES].
        values: float32 [n, n_targets], their mean measured value; NaN for none.
        smiles: n of them.
        threshold: the similarity to the nearest one below which a molecule is out of reach.
    """

    fingerprints: NDArray[np.uint8]
    values: NDArray[np.float32]
    smiles: tuple[str, ...]
    threshold: float


@dataclass(frozen=True, eq=False)
class Trust:
    """Everything under `trust/`.

    Attributes:
        atoms: the kinds of atoms the model learned from.
        structures: None where the bundle carries none.
        intervals: one a target; None for a class, and for a target without cross-validation.
    """

    atoms: frozenset[AtomKind]
    structures: Structures | None
    intervals: tuple[Interval | None, ...]

    def to_arrays(self) -> Arrays:
        """Return the arrays of a bundle."""
        arrays: dict[str, NDArray[Any]] = {"atoms": kinds_to_array(self.atoms)}
        if self.structures is not None:
            arrays |= {
                "fingerprints": self.structures.fingerprints,
                "values": self.structures.values,
                "smiles": np.frombuffer("\n".join(self.structures.smiles).encode(), np.uint8),
                "threshold": np.array([self.structures.threshold]),
            }
        for t, interval in enumerate(self.intervals):
            if interval is None:
                continue
            steps = interval.difficulty
            arrays[f"{t}/scores"] = interval.scores
            arrays[f"{t}/scale"] = np.array([steps.intercept])
            arrays[f"{t}/steps"] = np.stack(
                [steps.feature.astype(np.float64), steps.start, steps.end, steps.climb], axis=1
            )
        return {PREFIX + name: array for name, array in arrays.items()}


def read_trust(bundle: Bundle) -> Trust | None:
    """Return what a bundle carries; None where it is nothing, as in those of early versions.

    Raises:
        BundleError: when an array is missing, foreign, of another type or shape than its name
            says, or holds values that make no sense.
    """
    arrays = {
        name.removeprefix(PREFIX): array
        for name, array in bundle.arrays.items()
        if name.startswith(PREFIX)
    }
    if not arrays:
        return None
    n_targets = bundle.manifest.n_targets
    reader = _Reader(arrays, bundle.where)
    numbers = reader.take("atoms", np.int64, (None, 2))
    reader.require(
        "atoms",
        len(numbers) <= MAX_ATOM_KINDS
        and bool(((numbers[:, 0] > 0) & (numbers[:, 0] <= 118)).all()),
    )
    atoms = frozenset((int(number), int(charge)) for number, charge in numbers)
    structures = _read_structures(reader, n_targets) if reader.has(_STRUCTURES) else None
    n_features = len(SHAPE if structures is None else FEATURES)
    intervals = []
    for t, target in enumerate(bundle.manifest.targets):
        names = [f"{t}/{name}" for name in _OF_TARGET]
        there = target.kind == "regression" and reader.has(names)
        intervals.append(_read_interval(reader, t, n_features) if there else None)
    reader.refuse_others()
    return Trust(atoms, structures, tuple(intervals))


def _read_structures(reader: "_Reader", n_targets: int) -> Structures:
    fingerprints = reader.take("fingerprints", np.uint8, (None, N_BYTES))
    n = len(fingerprints)
    values = reader.take("values", np.float32, (n, n_targets))
    (threshold,) = reader.take("threshold", np.float64, (1,)).tolist()
    smiles = reader.text("smiles")
    reader.require("fingerprints", 0 < n <= MAX_STRUCTURES)
    reader.require("values", not np.isinf(values).any())
    reader.require("threshold", 0.0 <= threshold <= 1.0)
    # They are printed: no word of a stranger is to steer a terminal or a spreadsheet.
    plain = all(one.isprintable() and " " not in one and one[:1] not in "=+@" for one in smiles)
    reader.require("smiles", len(smiles) == n and plain)
    return Structures(fingerprints, values, smiles, threshold)


def _read_interval(reader: "_Reader", t: int, n_features: int) -> Interval:
    scores = reader.take(f"{t}/scores", np.float64, (None,))
    (intercept,) = reader.take(f"{t}/scale", np.float64, (1,)).tolist()
    steps = reader.take(f"{t}/steps", np.float64, (None, 4))
    reader.require(
        f"{t}/scores", bool(np.isfinite(scores).all() and (np.diff(scores, prepend=0) >= 0).all())
    )
    reader.require(f"{t}/scale", bool(np.isfinite(intercept)))
    feature, start, end, climb = steps.T
    whole = len(steps) <= MAX_STEPS and bool(
        np.isfinite(steps).all() and np.isin(feature, np.arange(n_features)).all()
    )
    reader.require(f"{t}/steps", whole and bool((end > start).all()))
    difficulty = Difficulty(intercept, feature.astype(np.int64), start, end, climb)
    return Interval(difficulty, scores)


class _Reader:
    """Takes arrays one by one, and minds what is left."""

    def __init__(self, arrays: Arrays, where: str) -> None:
        self._arrays = arrays
        self._where = where
        self._taken: set[str] = set()

    def has(self, names: Sequence[str]) -> bool:
        """Return whether any of the arrays is there; then all must be."""
        return any(name in self._arrays for name in names)

    def take(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """Return an array of a type and shape; None stands for any length."""
        array = self._arrays.get(name)
        if array is None:
            raise BundleError(f"{self._where}: {PREFIX}{name} is missing")
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            raise BundleError(
                f"{self._where}: {PREFIX}{name} is {array.dtype} {list(array.shape)}, expected "
                f"{np.dtype(dtype)} {['any' if n is None else n for n in shape]}"
            )
        self._taken.add(name)
        return array

    def text(self, name: str) -> tuple[str, ...]:
        """Return the lines of a text."""
        try:
            return tuple(bytes(self.take(name, np.uint8, (None,))).decode().split("\n"))
        except UnicodeDecodeError:
            raise BundleError(f"{self._where}: {PREFIX}{name} is not UTF-8 text") from None

    def require(self, name: str, holds: bool) -> None:
        """Raise when what must hold of an array does not."""
        if not holds:
            raise BundleError(f"{self._where}: {PREFIX}{name} holds values that make no sense")

    def refuse_others(self) -> None:
        """Raise when an array was not taken."""
        for name in sorted(set(self._arrays) - self._taken):
            raise BundleError(f"{self._where}: {PREFIX}{name[:80]} is not known here")

"""From what a bundle carries to the words and numbers beside a prediction."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import Bundle
from molscore.bundle.similarity_graph import SimilaritySearch
from molscore.chem.atom_kinds import KnownAtoms
from molscore.chem.molecule import Molecule
from molscore.chem.packed import PackedGraphs
from molscore.data.targets import Target
from molscore.data.writers import Cell
from molscore.errors import ConfigError
from molscore.trust.features import (
    N_NEIGHBOURS,
    Neighbours,
    difficulty_features,
    shape_features,
)
from molscore.trust.options import PLAIN, TrustOptions
from molscore.trust.stored import Structures, read_trust

DOMAIN_COLUMNS: Final = ("similarity", "in_domain", "domain_note")
NEIGHBOUR: Final = "neighbour_"
_DIGITS: Final = 4

Floats = NDArray[np.float64]


class Verdict(NamedTuple):
    """What is said about n molecules.

    Attributes:
        lower: float64 [n, n_targets], in the unit of the table; NaN where there is no interval.
        upper: likewise.
        extras: n rows of cells, one for each of `Judge.extras`.
    """

    lower: Floats
    upper: Floats
    extras: list[list[Cell]]


class _Nearest(NamedTuple):
    similarity: Floats
    which: NDArray[np.int64]


class Judge:
    """Says of molecules how far the predictions of one model can be trusted.

    Args:
        bundle: the model.
        options: what to say.

    Attributes:
        intervals: one flag a target, whether it has an interval.
        extras: names of further columns.
        numeric: one flag each, whether they hold numbers.

    Raises:
        BundleError: when what the model carries makes no sense.
        ConfigError: when neighbours are asked for, and the model carries none.
    """

    def __init__(self, bundle: Bundle, options: TrustOptions) -> None:
        self._targets = bundle.manifest.targets
        trust = None if options == PLAIN else read_trust(bundle)
        self._trust = trust
        self._level = options.interval
        self._domain = options.domain and trust is not None
        structures = None if trust is None else trust.structures
        if options.neighbours and structures is None:
            raise ConfigError(
                f"{bundle.where} carries no structures, so it has no neighbours to show: it was "
                "trained with --no-structures, or by an early molscore"
            )
        self._n_shown = min(options.neighbours, 0 if structures is None else len(structures.smiles))
        self.intervals = tuple(
            trust is not None and trust.intervals[t] is not None and self._level > 0
            for t in range(len(self._targets))
        )
        self.extras = (
            *(DOMAIN_COLUMNS if self._domain else ()),
            *_neighbour_columns(self._n_shown, self._targets),
        )
        n_numbers = 1 + len(self._targets)
        self.numeric = (
            *((True, False, False) if self._domain else ()),
            *(False, *[True] * n_numbers) * self._n_shown,
        )
        self._atoms = None if trust is None else KnownAtoms(trust.atoms)
        self._search: SimilaritySearch | None = None
        if structures is not None and (self.extras or any(self.intervals)):
            k = max(N_NEIGHBOURS, self._n_shown)
            self._search = SimilaritySearch(structures.fingerprints, k)

    @property
    def takes_fingerprints(self) -> bool:
        """Whether `judge` needs them."""
        return self._search is not None

    def judge(
        self,
        molecules: list[Molecule],
        packed: PackedGraphs,
        fingerprints: NDArray[np.uint8] | None,
        values: Floats,
    ) -> Verdict:
        """Judge n molecules.

        Args:
            molecules: those.
            packed: their graphs.
            fingerprints: of `fingerprint_many`; None where they are not needed.
            values: float64 [n, n_targets], what was predicted, in the unit of the table.
        """
        nearest = None
        if self._search is not None and fingerprints is not None:
            nearest = _Nearest(*self._search.nearest(fingerprints))
        lower, upper = self._bounds(packed, nearest, values)
        columns: list[Sequence[Cell]] = []
        structures = None if self._trust is None else self._trust.structures
        if self._domain and self._atoms is not None:
            strangers = self._atoms.strangers(molecules, packed)
            columns += _say_domain(len(molecules), strangers, structures, nearest)
        if nearest is not None and structures is not None:
            columns += _show_neighbours(nearest, structures, self._targets, self._n_shown)
        extras = [list(row) for row in zip(*columns, strict=True)]
        return Verdict(lower, upper, extras or [[] for _ in molecules])

    def _bounds(
        self, packed: PackedGraphs, nearest: _Nearest | None, values: Floats
    ) -> tuple[Floats, Floats]:
        lower, upper = np.full_like(values, np.nan), np.full_like(values, np.nan)
        if not any(self.intervals) or self._trust is None or not len(values):
            return lower, upper
        shape = shape_features(packed)
        for t, interval in enumerate(self._trust.intervals):
            if interval is None:
                continue
            target = self._targets[t]
            prediction = target.forward(values[:, t])
            structures = self._trust.structures
            around = (
                None
                if nearest is None or structures is None
                else neighbours_of(structures, nearest.similarity, nearest.which, t)
            )
            features = difficulty_features(prediction, shape, around)
            half = interval.half_widths(features, self._level)
            with np.errstate(over="ignore", invalid="ignore"):
                bounds = [target.inverse(prediction + side * half) for side in (-1, 1)]
            whole = np.isfinite(bounds[0]) & np.isfinite(bounds[1])
            lower[whole, t], upper[whole, t] = bounds[0][whole], bounds[1][whole]
        return lower, upper


def _say_domain(
    n: int, strangers: dict[int, str], structures: Structures | None, nearest: _Nearest | None
) -> list[Sequence[Cell]]:
    """Return the columns of `DOMAIN_COLUMNS` for n molecules."""
    similar: list[Cell] = [None] * n
    inside: list[Cell] = [""] * n
    notes: list[Cell] = [""] * n
    for i in range(n):
        said = [strangers[i]] if i in strangers else []
        if nearest is not None and structures is not None:
            nearness = float(nearest.similarity[i, 0])
            similar[i] = round(nearness, _DIGITS)
            if nearness < structures.threshold:
                said.append(f"no training molecule is nearer than {nearness:.2f}")
            inside[i] = "no" if said else "yes"
        elif said:
            inside[i] = "no"
        notes[i] = "; ".join(said)
    return [similar, inside, notes]


def _show_neighbours(
    nearest: _Nearest, structures: Structures, targets: Sequence[Target], n_shown: int
) -> list[Sequence[Cell]]:
    """Return the columns of `_neighbour_columns`."""
    columns: list[Sequence[Cell]] = []
    for rank in range(n_shown):
        which = nearest.which[:, rank]
        columns.append([structures.smiles[i] for i in which])
        columns.append([round(x, _DIGITS) for x in nearest.similarity[:, rank].tolist()])
        for t, target in enumerate(targets):
            measured = target.inverse(structures.values[which, t].astype(np.float64))
            columns.append([None if np.isnan(x) else _short(x) for x in measured.tolist()])
    return columns


def neighbours_of(
    structures: Structures, similarity: Floats, index: NDArray[np.int64], target: int
) -> Neighbours:
    """Return what is known of the nearest structures, for one target.

    Args:
        structures: all of them.
        similarity: float64 [n, k].
        index: int64 [n, k], which structures.
        target: number of the target.
    """
    k = min(N_NEIGHBOURS, similarity.shape[1])
    chosen = index[:, :k]
    return Neighbours(
        similarity[:, :k],
        structures.values[chosen, target].astype(np.float64),
    )


def _neighbour_columns(n: int, targets: Sequence[Target]) -> list[str]:
    return [
        name
        for rank in range(1, n + 1)
        for name in (
            f"{NEIGHBOUR}{rank}",
            f"{NEIGHBOUR}{rank}_similarity",
            *(f"{NEIGHBOUR}{rank}_{target.name}" for target in targets),
        )
    ]


def _short(value: float) -> float:
    return float(f"{value:.6g}")

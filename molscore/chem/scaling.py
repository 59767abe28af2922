"""Descriptors on a common scale: imputed, clipped, standardised, always finite."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from molscore.chem.descriptor_names import DESCRIPTOR_NAMES
from molscore.errors import BundleError

_LARGEST: Final = float(np.finfo(np.float32).max)
_TAIL: Final = 0.01
_MAX_SCORE: Final = 10.0
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class DescriptorScaler:
    """Imputation, clipping and standardisation, fitted on training rows and stored.

        z = clip((clip(x, lower, upper) - mean) / scale, -10, 10),   x = median where not finite

    Attributes:
        names: the descriptors, one per column.
        lower, upper: float64 [d], the range values are clipped to: the central 98 % of the
            training values, widened by its own width on both sides, within what training
            held. Where the central 98 % are one value (a rare group) all of the range counts.
        median: float64 [d], what a missing value becomes; 0 for a column without any value.
        mean, scale: float64 [d], mean and standard deviation of the imputed and clipped
            training values; scale is 1 for a constant column, which thus becomes 0.
    """

    names: tuple[str, ...]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    median: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, values: NDArray[np.float64], names: Sequence[str] = DESCRIPTOR_NAMES) -> Self:
        """Fit on training rows.

        Args:
            values: float64 [n, d], NaN where missing; n may be 0, and values beyond the range
                of float32 count as missing.
            names: the d column names.

        Raises:
            ValueError: when `values` is not [n, d].
        """
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(names):
            raise ValueError(f"expected [n, {len(names)}] descriptors, got shape {values.shape}")
        columns = [_fit_column(values[:, j]) for j in range(len(names))]
        table = np.array(columns, dtype=np.float64).reshape(len(names), 5)
        return cls(tuple(names), *(np.ascontiguousarray(c) for c in table.T))

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scale descriptors; the result is finite whatever comes in.

        Args:
            values: float64 [n, d].

        Returns:
            float32 [n, d] within -10 to 10.

        Raises:
            ValueError: when `values` is not [n, d].
        """
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(
                f"expected [n, {len(self.names)}] descriptors, got shape {values.shape}"
            )
        filled = np.where(_present(values), values, self.median)
        with np.errstate(over="ignore"):
            scores = (np.clip(filled, self.lower, self.upper) - self.mean) / self.scale
        return np.clip(scores, -_MAX_SCORE, _MAX_SCORE).astype(np.float32)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the five float64 [d] arrays by name, and `names` as UTF-8 bytes (uint8)."""
        arrays: dict[str, NDArray[Any]] = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name != "names"
        }
        arrays["names"] = np.frombuffer("\n".join(self.names).encode(), dtype=np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Rebuild a scaler from `to_arrays`.

        Raises:
            BundleError: when an array is missing, of another length, not finite, a scale is
                not positive, or the names cannot be read.
        """
        expected = [f.name for f in fields(cls)]
        missing = [name for name in expected if name not in arrays]
        if missing:
            raise BundleError(f"descriptor scaler: array {missing[0]!r} is missing")
        try:
            text = bytes(np.asarray(arrays["names"], dtype=np.uint8)).decode()
        except UnicodeDecodeError:
            raise BundleError("descriptor scaler: 'names' is not UTF-8 text") from None
        names = tuple(text.split("\n")) if text else ()
        columns = {}
        for name in expected[1:]:
            column = np.asarray(arrays[name], dtype=np.float64)
            if column.shape != (len(names),):
                raise BundleError(
                    f"descriptor scaler: {name!r} has shape {column.shape}, "
                    f"expected ({len(names)},)"
                )
            if not np.isfinite(column).all():
                raise BundleError(f"descriptor scaler: {name!r} holds NaN or infinite values")
            columns[name] = column
        if (columns["scale"] <= 0).any():
            raise BundleError("descriptor scaler: 'scale' holds values that are not positive")
        return cls(names, **columns)


def _present(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.abs(np.nan_to_num(values, nan=np.inf)) <= _LARGEST


def _fit_column(values: NDArray[np.float64]) -> tuple[float, float, float, float, float]:
    """Return lower, upper, median, mean and scale of one column [n]."""
    known = values[_present(values)]
    if not len(known):
        return 0.0, 0.0, 0.0, 0.0, 1.0
    low, median, high = np.quantile(known, [_TAIL, 0.5, 1 - _TAIL])
    lower, upper = float(known.min()), float(known.max())
    if high > low:
        lower, upper = max(lower, 2 * low - high), min(upper, 2 * high - low)
    clipped = np.clip(np.where(_present(values), values, median), lower, upper)
    mean, scale = float(clipped.mean()), float(clipped.std())
    # A constant column may differ from its mean by rounding alone.
    if scale <= _ROUNDING * max(abs(lower), abs(upper)):
        mean, scale = float(median), 1.0
    return lower, upper, float(median), mean, scale

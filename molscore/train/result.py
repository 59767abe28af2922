"""What the training of an expert leaves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ExpertResult:
    """A trained expert.

    Attributes:
        weights: the state dict as numpy arrays.
        rows: int64 [m], indices of the rows it never saw.
        predictions: float32 [m, n_targets], its outputs on them in (transformed) target units;
            logits for classes.
        loss: mean training loss of the last epoch, in standardised units.
    """

    weights: dict[str, NDArray[np.float32]]
    rows: NDArray[np.int64]
    predictions: NDArray[np.float32]
    loss: float

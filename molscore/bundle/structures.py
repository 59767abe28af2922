"""Which structures a model was trained on, as hashes that do not give them away at sight.

A bundle keeps one 64-bit hash a structure, sorted, so `evaluate` can say how many molecules of
a table the model has seen. Structures of the model it started from, or learned from, are among
them: what that one learned of them is in the weights. The hash has no key: whoever holds a
structure can test for it, but cannot read structures off the hashes.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

STRUCTURES: Final = "structures"
"""Name of the array in a bundle: uint64, sorted, each once."""


def hash_structure(key: str) -> int:
    """Return the 64-bit BLAKE2b hash of a structure key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


def hash_structures(keys: Iterable[str]) -> NDArray[np.uint64]:
    """Return the hashes of different keys, sorted, each once."""
    return np.array(sorted({hash_structure(key) for key in keys}), dtype=np.uint64)


def join_structures(*parts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes that are in any of the parts, sorted, each once."""
    return np.unique(np.concatenate(parts))


def seen(keys: Sequence[str], structures: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each key [n] whether it is among the stored structures."""
    hashes = np.array([hash_structure(key) for key in keys], dtype=np.uint64)
    return np.isin(hashes, structures)

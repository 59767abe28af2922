"""Which structures a model was trained on, as hashes that do not give them away at sight.

A bundle keeps one 64-bit hash a structure, sorted, so `evaluate` can say how many molecules of
a table the model has seen. Structures of the model it started from, or learned from, are among
them: what that one learned of them is in the weights. Hashes may have a key, so that those of two
models cannot be compared; as the bundle names it, whoever holds bundle and structure can still
test for it, but nobody can read structures off the hashes.

structures         uint64, sorted, each once
structures/KEY     the same, hashed with a key: 32 hex digits
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

STRUCTURES: Final = "structures"
"""Name of the array in a bundle; a key follows behind a slash."""

KEY_BYTES: Final = 16
_NAME: Final = re.compile(rf"{STRUCTURES}(?:/([0-9a-f]{{{2 * KEY_BYTES}}}))?")

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class KnownStructures:
    """Hashes of structures.

    Attributes:
        parts: key -> hashes, sorted, each once; the empty key is none.
    """

    parts: Mapping[bytes, Hashes]

    @classmethod
    def of(cls, keys: Iterable[str], secret: bytes = b"") -> Self:
        """Hash structure keys.

        Args:
            keys: of `molscore.chem.parse.structure_key`.
            secret: key of the hashes, `KEY_BYTES` long; empty for none.
        """
        hashes = sorted({hash_structure(key, secret) for key in keys})
        return cls({secret: np.array(hashes, dtype=np.uint64)})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Read what a bundle carries; None for nothing."""
        found = {name: match for name in arrays if (match := _NAME.fullmatch(name))}
        parts = {bytes.fromhex(match[1] or ""): arrays[name] for name, match in found.items()}
        return cls(parts) if parts else None

    def to_arrays(self) -> dict[str, Hashes]:
        """Return the arrays of a bundle."""
        return {
            f"{STRUCTURES}/{secret.hex()}" if secret else STRUCTURES: hashes
            for secret, hashes in self.parts.items()
        }

    def joined(self, other: Self | None) -> Self:
        """Return the structures of both."""
        if other is None:
            return self
        parts = dict(self.parts)
        for secret, hashes in other.parts.items():
            mine = parts.get(secret, np.empty(0, dtype=np.uint64))
            parts[secret] = np.unique(np.concatenate([mine, hashes]))
        return type(self)(parts)

    def seen(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Return for each structure key [n] whether it is among them."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for secret, known in self.parts.items():
            hashes = np.array([hash_structure(key, secret) for key in keys], dtype=np.uint64)
            found |= np.isin(hashes, known)
        return found


def hash_structure(key: str, secret: bytes = b"") -> int:
    """Return the 64-bit BLAKE2b hash of a structure key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8, key=secret).digest(), "little")

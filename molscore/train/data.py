"""What experts train on: packed graphs, descriptors, targets and folds, in a few flat arrays."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from molscore.chem.packed import PackedGraphs
from molscore.errors import InputError
from molscore.train.files import write_atomically

_GRAPH_FIELDS = ("atom_codes", "bond_atoms", "bond_codes", "atom_ptr", "bond_ptr")


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The usable rows of a table.

    Attributes:
        graphs: n molecules.
        values: float64 [n, n_targets], in (transformed) target units; NaN where there is no
            label; 0 or 1 for classes.
        is_class: one flag a target.
        folds: int64 [n], the fold that holds a row out; -1 for none.
        table_rows: int64 [n], where each row stood in the table.
        descriptors: float64 [n, n_descriptors] with NaN where undefined, or None.
        teacher: float64 [n_students, n, n_targets], what each student is to learn in the place
            of `values`, in the same units (a class: its probability); the last student is blind
            to no fold. None where measured values are learned.
    """

    graphs: PackedGraphs
    values: NDArray[np.float64]
    is_class: tuple[bool, ...]
    folds: NDArray[np.int64]
    table_rows: NDArray[np.int64]
    descriptors: NDArray[np.float64] | None = None
    teacher: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return int(self.values.shape[1])

    @property
    def n_descriptors(self) -> int:
        """Number of descriptors, 0 without."""
        return 0 if self.descriptors is None else int(self.descriptors.shape[1])

    def parts(self, fold: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows an expert blind to `fold` trains on, and those it is judged on."""
        return np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def of_expert(self, expert: int) -> "TrainingData":
        """Return what an expert learns from; a student gets nothing but its own teacher's words."""
        if self.teacher is None:
            return self
        ships = expert == len(self.teacher) - 1
        return dataclasses.replace(
            self,
            values=self.teacher[expert],
            folds=np.full_like(self.folds, -1) if ships else self.folds,
            teacher=None,
        )

    def without_descriptors(self) -> "TrainingData":
        """Return the same rows for a network that takes none."""
        return dataclasses.replace(self, descriptors=None)

    def _arrays(self) -> dict[str, NDArray[np.generic]]:
        arrays: dict[str, NDArray[np.generic]] = {
            name: np.ascontiguousarray(getattr(self.graphs, name)) for name in _GRAPH_FIELDS
        }
        arrays |= {"values": self.values, "folds": self.folds, "table_rows": self.table_rows}
        if self.descriptors is not None:
            arrays["descriptors"] = self.descriptors
        if self.teacher is not None:
            arrays["teacher"] = self.teacher
        return arrays

    def digest(self) -> str:
        """Return the sha256 of everything training sees."""
        sha = hashlib.sha256(json.dumps(self.is_class).encode())
        for name, array in sorted(self._arrays().items()):
            sha.update(f"{name} {array.dtype} {array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

    def save(self, path: Path) -> None:
        """Write to a safetensors file, whole or not at all."""
        about = {"is_class": json.dumps(self.is_class)}
        write_atomically(path, lambda p: save_file(self._arrays(), p, about))

    @classmethod
    def load(cls, path: Path) -> "TrainingData":
        """Read what `save` wrote.

        Raises:
            InputError: when the file is missing or damaged.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                is_class = tuple(json.loads(file.metadata()["is_class"]))
                a = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return cls(
                graphs=PackedGraphs(**{name: a[name] for name in _GRAPH_FIELDS}),
                values=a["values"],
                is_class=is_class,
                folds=a["folds"],
                table_rows=a["table_rows"],
                descriptors=a.get("descriptors"),
                teacher=a.get("teacher"),
            )
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise InputError(f"{path}: cannot be read as training data ({error})") from None

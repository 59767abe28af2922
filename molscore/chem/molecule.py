"""What parsing gives: a molecule, or the reason there is none."""

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["empty", "invalid_smiles", "unsupported"]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A record that gives no molecule.

    Attributes:
        row: 0-based record number.
        smiles: the text as given, byte for byte.
        status: `empty` (nothing there), `invalid_smiles` (not a molecule), `unsupported` (a
            molecule, but outside what molscore models).
        reason: why, in one line.
    """

    row: int
    smiles: str
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class Molecule:
    """A standardised molecule.

    Attributes:
        row: 0-based record number.
        smiles: the text as given.
        mol: RDKit Mol, standardised; treat it as read-only.
    """

    row: int
    smiles: str
    mol: Any

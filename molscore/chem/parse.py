"""SMILES text to standardised molecules; every failure becomes a value with a reason."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from rdkit import Chem, rdBase
from rdkit.Chem import rdinchi

from molscore.chem.diagnosis import (
    MISSING_WORDS,
    explain,
    heavy_atoms_unsanitised,
    message,
    text_problem,
)
from molscore.chem.policy import MAX_ATOMS, MAX_SMILES_LENGTH, ChemPolicy
from molscore.chem.standardise import DUMMY, parent, standardise

Status = Literal["empty", "invalid_smiles", "unsupported"]

_LABELLED: Final = re.compile(r"\[\d|:\d+\]")
_RDKIT_ERRORS: Final = (ValueError, RuntimeError)  # MolSanitizeException is a ValueError


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


class _Refusal(NamedTuple):
    status: Status
    reason: str


def _parser_options() -> Any:
    options: Any = Chem.SmilesParserParams()
    options.removeHs = False  # isotopes come first: [2H] is a hydrogen like any other
    options.allowCXSMILES = False
    options.parseName = False
    return options


_OPTIONS: Final = _parser_options()


def parse_smiles(smiles: str, policy: ChemPolicy, row: int = 0) -> Molecule | ParseFailure:
    """Read one SMILES and standardise it.

    RDKit's log is kept quiet for the length of the call alone; its words become the reason.

    Args:
        smiles: SMILES as found in a table; blanks around it and a CXSMILES extension behind
            it are dropped. `ChemPolicy` lists what else is accepted, ignored and refused.
        policy: how to standardise.
        row: 0-based record number, carried along.

    Returns:
        The molecule, or why there is none. No text raises an exception.
    """
    text, *rest = smiles.split(None, 1) or [""]
    refusal = _refuse_text(text, rest[0].strip() if rest else "")
    if refusal is not None:
        return ParseFailure(row, smiles, *refusal)
    with rdBase.BlockLogs():
        result = _read(text, policy)
    if isinstance(result, _Refusal):
        return ParseFailure(row, smiles, *result)
    return Molecule(row, smiles, result)


def _refuse_text(text: str, rest: str) -> _Refusal | None:
    """Refuse what needs no chemistry to be refused; `rest` is what follows the first blank."""
    if not text:
        return _Refusal("empty", "no SMILES")
    if text.lower() in MISSING_WORDS and not rest:
        return _Refusal("empty", f"no SMILES: {text!r} stands for a missing value")
    if len(text) > MAX_SMILES_LENGTH:
        return _Refusal(
            "unsupported", f"SMILES of {len(text)} characters; at most {MAX_SMILES_LENGTH}"
        )
    problem = text_problem(text)
    if problem is None and rest and not rest.startswith("|"):
        problem = f"text after the SMILES: {rest!r}"
    return _Refusal("invalid_smiles", problem) if problem else None


def _read(text: str, policy: ChemPolicy) -> Any:
    """Return a standardised RDKit Mol, or a `_Refusal`."""
    if len(text) > MAX_ATOMS and heavy_atoms_unsanitised(text) > MAX_ATOMS:
        return _Refusal("unsupported", f"more than {MAX_ATOMS} heavy atoms")
    with rdBase.CaptureErrorLog() as log:
        mol: Any = Chem.MolFromSmiles(text, _OPTIONS)
    if mol is None:
        return _Refusal("invalid_smiles", explain(text, log.messages))
    if mol.HasSubstructMatch(DUMMY):
        return _Refusal("unsupported", "a dummy atom (*) stands for no element")
    try:
        return standardise(mol, policy, labelled=_LABELLED.search(text) is not None)
    except _RDKIT_ERRORS as error:
        return _Refusal("unsupported", f"cannot be standardised: {message(error)}")


def structure_key(molecule: Molecule) -> str:
    """Return a text that is equal for equal structures: the InChIKey's first block.

    It covers the connectivity of the standardised parent: salts, charges that a proton makes,
    stereo and mobile hydrogens make no difference. A structure InChI cannot express gets the
    hash of its parent's canonical SMILES instead, in lower case so the two never meet.

    Source: RDKit `MolToInchiKey`.
    """
    with rdBase.BlockLogs():
        mol = parent(molecule.mol)
        key = str(rdinchi.MolToInchiKey(mol))
        if key:
            return key[:14]
        smiles = Chem.MolToSmiles(mol, isomericSmiles=False)
    return hashlib.sha256(smiles.encode()).hexdigest()[:14]


def scaffold(molecule: Molecule) -> str:
    """Return the Bemis-Murcko scaffold as SMILES without stereo, "" without rings.

    Source: Bemis and Murcko, doi:10.1021/jm9602928; RDKit `MurckoDecompose`.
    """
    with rdBase.BlockLogs():
        # Brackets in the SMILES fix hydrogen counts, which the core would inherit; a canonical
        # SMILES has brackets only where they are needed.
        plain = Chem.MolFromSmiles(Chem.MolToSmiles(molecule.mol, isomericSmiles=False))
        core = Chem.MurckoDecompose(molecule.mol if plain is None else plain)
        return str(Chem.MolToSmiles(core))

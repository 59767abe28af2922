"""SMILES text to standardised molecules; every failure becomes a value with a reason."""

import re
from typing import Any, Final, NamedTuple

from rdkit import Chem, rdBase

from molscore.chem.diagnosis import (
    MISSING_WORDS,
    explain,
    message,
    oversize,
    text_problem,
)
from molscore.chem.identity import scaffold, structure_key
from molscore.chem.molecule import Molecule, ParseFailure, Status
from molscore.chem.policy import MAX_ATOMS, MAX_RINGS, MAX_SMILES_LENGTH, ChemPolicy
from molscore.chem.standardise import DUMMY, standardise

__all__ = ["Molecule", "ParseFailure", "Status", "parse_smiles", "scaffold", "structure_key"]

# A ring takes at least two digits, a heavy atom one character.
_SURELY_SMALL: Final = min(MAX_ATOMS, 2 * MAX_RINGS)
_LABELLED: Final = re.compile(r"\[\d|:\d+\]")
_RDKIT_ERRORS: Final = (ValueError, RuntimeError)  # MolSanitizeException is a ValueError


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
    excess = oversize(text) if len(text) > _SURELY_SMALL else None
    if excess is not None:
        return _Refusal("unsupported", excess)
    mol: Any = Chem.MolFromSmiles(text, _OPTIONS)
    if mol is None:
        return _Refusal("invalid_smiles", _why_invalid(text))
    # Only brackets hold hydrogens, isotopes, maps and, but for the star, dummies.
    bracketed = "[" in text
    if (bracketed or "*" in text) and mol.HasSubstructMatch(DUMMY):
        return _Refusal("unsupported", "a dummy atom (*) stands for no element")
    labelled = bracketed and _LABELLED.search(text) is not None
    try:
        return standardise(mol, policy, labelled=labelled, hydrogens=bracketed)
    except _RDKIT_ERRORS as error:
        return _Refusal("unsupported", f"cannot be standardised: {message(error)}")


def _why_invalid(text: str) -> str:
    """Read once more what could not be read, now listening; good SMILES need not pay for it."""
    with rdBase.CaptureErrorLog() as log:
        Chem.MolFromSmiles(text, _OPTIONS)
    return explain(text, log.messages)

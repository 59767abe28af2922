"""Say in words why RDKit refused a SMILES."""

import re
from typing import Any, Final

from rdkit import Chem, rdBase

from molscore.chem.policy import MAX_ATOMS, MAX_RINGS

MISSING_WORDS: Final = frozenset(
    ("nan", "na", "n/a", "#n/a", "<na>", "none", "null", "nil", "-", "--", ".", "?")
)

_TIME: Final = re.compile(r"^\[\d\d:\d\d:\d\d\] ?", re.MULTILINE)
_POSITION: Final = re.compile(r"around position (\d+)")
_BRACKET: Final = re.compile(r"\[[^\[\]]*\]")
_PLACEHOLDER: Final = re.compile(r"\[?\(?R\d*'*\)?n?\]?", re.IGNORECASE)
_INCHIKEY: Final = re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]")
_FOREIGN: Final = re.compile("[^!-~]")
_QUOTES: Final = "\"'`"


def text_problem(text: str) -> str | None:
    """Find what makes `text` no SMILES before RDKit sees it.

    Args:
        text: one SMILES without surrounding blanks, not empty.

    Returns:
        The reason, or None when RDKit may try.
    """
    foreign = _FOREIGN.search(text)
    if foreign is None:
        return None
    return f"character {foreign[0]!r} at position {foreign.start() + 1} is not part of SMILES"


def explain(text: str, log: str) -> str:
    """Explain a SMILES that RDKit returned no molecule for.

    Args:
        text: the SMILES as RDKit got it.
        log: what RDKit wrote to its error log meanwhile; may be empty.

    Returns:
        One line. It begins with what was recognised (a reaction, an InChI, ...), or else
        holds RDKit's own words.
    """
    return _look_alike(text) or _unknown_atom(text) or _rdkit_words(log)


def _look_alike(text: str) -> str | None:
    if text.lower().startswith("inchi="):
        return "looks like InChI; molscore reads SMILES and converts nothing"
    if _INCHIKEY.fullmatch(text):
        return "looks like an InChIKey; a structure cannot be read from it"
    if text[0] in _QUOTES or text[-1] in _QUOTES:
        return "quotes around or in the SMILES; remove them"
    if ">" in text.replace("->", ""):
        return "a reaction, not a molecule; give its molecules one by one"
    return None


def _unknown_atom(text: str) -> str | None:
    """Name the first bracket that is no atom: `[R1]`, `[alkyl]`, `[Xx]`."""
    for bracket in _BRACKET.findall(text):
        if _is_atom(bracket):
            continue
        if _PLACEHOLDER.fullmatch(bracket):
            return f"{bracket} is an R-group placeholder, not an atom"
        return f"{bracket} is not an atom"
    return None


def _is_atom(bracket: str) -> bool:
    with rdBase.BlockLogs():
        return _unsanitised(bracket) is not None


def first_words(log: str) -> str:
    """Return the first line of RDKit's log that says something, "" if there is none.

    A violated condition is framed in stars and headed by its kind; what it says comes after.
    """
    for line in _TIME.sub("", log).splitlines():
        words = " ".join(line.split())
        if words.strip("*") and not words.endswith(" Violation"):
            return words
    return ""


def _rdkit_words(log: str) -> str:
    first = first_words(log)
    if not first:
        return "RDKit cannot read it as SMILES"
    first = first.removeprefix("SMILES Parse Error: ")
    if first.startswith("syntax error"):
        found = _POSITION.search(log)
        return "SMILES syntax error" + (f" near position {found[1]}" if found else "")
    first = re.sub(r" for input: .*$", "", first)
    if "kekulize" in first:
        return f"{first} (an aromatic N may lack its H: [nH])"
    return first


def message(error: Exception) -> str:
    """Return an RDKit exception's text as one line."""
    return _rdkit_words(str(error))


def oversize(text: str) -> str | None:
    """Find that a SMILES has too many atoms or rings, before the costly part of reading it.

    Returns:
        What it has too many of, or None; None too when it cannot be read.
    """
    mol = _unsanitised(text)
    if mol is None:
        return None
    if mol.GetNumHeavyAtoms() > MAX_ATOMS:
        return f"more than {MAX_ATOMS} heavy atoms"
    if mol.GetNumBonds() - mol.GetNumAtoms() + len(Chem.GetMolFrags(mol)) > MAX_RINGS:
        return f"more than {MAX_RINGS} rings"
    return None


def _unsanitised(text: str) -> Any:
    options: Any = Chem.SmilesParserParams()
    options.sanitize = False
    options.removeHs = False
    options.allowCXSMILES = False
    return Chem.MolFromSmiles(text, options)

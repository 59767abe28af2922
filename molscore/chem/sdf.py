"""Records of SD files: a mol block as SMILES, and the properties behind it."""

import re
from typing import Any, Final, NamedTuple

from rdkit import Chem, rdBase

from molscore.chem.diagnosis import first_words

# A name in angle brackets, or else the number of a field.
_HEADING: Final = re.compile(r">(?:[^<]*<(.+)>|.*\b(DT\d+)\b)")


class SdfRecord(NamedTuple):
    """One record of an SD file.

    Attributes:
        smiles: isomeric SMILES of the mol block as drawn, "" if it cannot be read or has no
            atoms.
        name: first line of the mol block.
        properties: name to text; the lines of a value are joined by line feeds.
        problem: why the mol block cannot be read, or None.
    """

    smiles: str
    name: str
    properties: dict[str, str]
    problem: str | None


def read_sdf_block(block: str) -> SdfRecord:
    """Read one record.

    Args:
        block: its lines, joined by line feeds, without the closing `$$$$`.

    Source: RDKit `MolFromMolBlock`, strict; `MolToSmiles`.
    """
    lines = block.split("\n")
    name = lines[0].strip()
    properties = _read_properties(lines)
    if sum(line.startswith("M  END") for line in lines) > 1:
        # RDKit would read the first and drop the others without a word.
        reason = "more than one mol block in a record; is a line with $$$$ missing?"
        return SdfRecord("", name, properties, reason)
    with rdBase.BlockLogs(), rdBase.CaptureErrorLog() as log:
        try:
            mol: Any = Chem.MolFromMolBlock(block)
        except (ValueError, RuntimeError) as error:
            return SdfRecord("", name, properties, _problem(str(error)))
        if mol is None:
            return SdfRecord("", name, properties, _problem(log.messages))
        return SdfRecord(Chem.MolToSmiles(mol), name, properties, None)


def property_names(block: str) -> list[str]:
    """List the properties of one record in order, without reading its mol block."""
    return list(_read_properties(block.split("\n")))


def _read_properties(lines: list[str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    heading: str | None = None
    value: list[str] = []
    for line in [*lines, ""]:
        if heading is not None:
            if line.strip():
                value.append(line)
                continue
            properties.setdefault(heading, "\n".join(value))
            heading, value = None, []
        elif line.startswith(">") and (match := _HEADING.match(line)):
            heading = match.group(1) or match.group(2)
    return properties


def _problem(words: str) -> str:
    reason = first_words(words) or "it is cut short, or none"
    return f"the mol block cannot be read: {reason}"

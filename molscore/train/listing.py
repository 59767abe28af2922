"""Tables of molecules whose values do not matter.

Those a model must not learn from, such as a benchmark's, and those a student learns its teacher's
words of.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.tables import open_table


@dataclass(frozen=True)
class Listing:
    """The molecules of a table.

    Attributes:
        name: of the file.
        sha256: of its SMILES, one a line.
        smiles: as written.
    """

    name: str
    sha256: str
    smiles: tuple[str, ...]

    def keys(self, policy: ChemPolicy) -> frozenset[str]:
        """Return the structure keys under a standardisation; what cannot be read has none."""
        parsed = (parse_smiles(smiles, policy) for smiles in self.smiles)
        return frozenset(structure_key(m) for m in parsed if isinstance(m, Molecule))


def read_listing(path: str | Path) -> Listing:
    """Read the SMILES of a table of any form that can be predicted.

    Raises:
        InputError: when it cannot be read or has no SMILES.
    """
    with open_table(path) as reader:
        smiles = tuple(
            "" if record.problem else record.fields[reader.smiles_index] for record in reader
        )
    sha256 = hashlib.sha256("\n".join(smiles).encode()).hexdigest()
    return Listing(Path(path).name, sha256, smiles)

"""Tables of molecules whose values do not matter.

Those a model must not learn from, such as a benchmark's, and those a student learns its teacher's
words of.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.tables import open_table
from molscore.errors import InputError
from molscore.train.log import Log


@dataclass(frozen=True)
class Listing:
    """The molecules of a table.

    Attributes:
        name: of the file.
        sha256: of its SMILES, one a line.
        smiles: as written; "" of a row that cannot be trusted.
        column: where they stood.
    """

    name: str
    sha256: str
    smiles: tuple[str, ...]
    column: str = ""

    def read(self, policy: ChemPolicy) -> tuple[frozenset[str], int]:
        """Return the structure keys under a standardisation, and how many rows have none."""
        keys = [
            structure_key(molecule)
            for smiles in self.smiles
            if isinstance(molecule := parse_smiles(smiles, policy), Molecule)
        ]
        return frozenset(keys), len(self.smiles) - len(keys)


def read_excluded(listings: Sequence[Listing], policy: ChemPolicy, log: Log) -> frozenset[str]:
    """Return the keys of all structures that are not to be learned from; say how many there are.

    Raises:
        InputError: when a listing has none that can be read: it would exclude nothing.
    """
    excluded: set[str] = set()
    for listing in listings:
        keys, n_unread = listing.read(policy)
        where = f" in column {listing.column!r}" if listing.column else ""
        if not keys:
            raise InputError(
                f"{listing.name}: no structure to leave out: none of {len(listing.smiles)} rows "
                f"has a SMILES{where} that can be read; is it the right table and column?"
            )
        # A row that could not be read may be a structure that is learned from after all.
        log(
            f"{'warning: ' * bool(n_unread)}{listing.name}: {len(keys)} "
            f"structure{'s' * (len(keys) != 1)} to leave out "
            f"({n_unread} row{'s' * (n_unread != 1)} could not be read){where}"
        )
        excluded |= keys
    return frozenset(excluded)


def read_listing(path: str | Path) -> Listing:
    """Read the SMILES of a table of any form that can be predicted.

    Raises:
        InputError: when it cannot be read or has no SMILES.
    """
    with open_table(path) as reader:
        column = reader.columns[reader.smiles_index]
        smiles = tuple(
            "" if record.problem else record.fields[reader.smiles_index] for record in reader
        )
    sha256 = hashlib.sha256("\n".join(smiles).encode()).hexdigest()
    return Listing(Path(path).name, sha256, smiles, column)

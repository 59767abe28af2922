"""A chunk of rows to predict."""

from typing import NamedTuple


class Task(NamedTuple):
    """One chunk."""

    first_row: int
    smiles: list[str]

"""Which RDKit computes the features."""

from rdkit import rdBase


def rdkit_version() -> str:
    """Return RDKit's version, such as `2026.09.1`."""
    return str(rdBase.rdkitVersion)

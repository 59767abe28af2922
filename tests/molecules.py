"""Molecules for tests of models."""

import numpy as np

from molscore.chem.graph import featurize_many
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import Molecule, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.nn.batch import GraphBatch

VARIED = (
    "CCO",
    "C",
    "[Na+].[Cl-]",
    "c1ccccc1",
    "CC(=O)Oc1ccccc1C(=O)O",
    "F/C=C/F",
    "C[C@H](N)C(=O)O",
    "O",
    "C1CC2(CC1)OCCO2",
    "C[N+](C)(C)CC(=O)[O-]",
    "CS(=O)(=O)N",
    "N#Cc1ccc2[nH]ccc2c1",
)


def molecule(smiles: str) -> Molecule:
    """Parse a SMILES that must be valid."""
    parsed = parse_smiles(smiles, ChemPolicy())
    assert isinstance(parsed, Molecule), parsed
    return parsed


def pack(*smiles: str) -> PackedGraphs:
    """Featurise valid SMILES."""
    return featurize_many([molecule(s) for s in smiles])


def batch_of(*smiles: str) -> GraphBatch:
    """Return valid SMILES as one batch."""
    return GraphBatch.from_arrays(pack(*smiles).batch(np.arange(len(smiles))))

"""CIP labels as codes."""

from collections.abc import Sequence
from typing import Any, Final

from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, Feature

MAX_CIP_STEPS: Final = 30_000
"""Bound of the CIP search, some 25 ms; molecules of even 3,000 u need about 100."""

_CIP, _STEREO = ATOM_FEATURES[-1], BOND_FEATURES[-1]


def cip_codes(mol: Any, atoms: Sequence[int], bonds: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the codes of `cip` and `stereo`; `other`: no label was found within the bound.

    Args:
        mol: RDKit Mol; it is not changed.
        atoms: indices of all its atoms with a chiral tag.
        bonds: indices of all its bonds with stereo.
    """
    labelled = Chem.Mol(mol)
    try:
        rdCIPLabeler.AssignCIPLabels(labelled, maxRecursiveIterations=MAX_CIP_STEPS)
    except RuntimeError:  # MaxIterationsExceeded: labels so far depend on the atom order
        return [_CIP.other] * len(atoms), [_STEREO.other] * len(bonds)
    return (
        [_label_code(labelled.GetAtomWithIdx(i), _CIP) for i in atoms],
        [_label_code(labelled.GetBondWithIdx(i), _STEREO) for i in bonds],
    )


def _label_code(item: Any, feature: Feature) -> int:
    label = item.GetProp("_CIPCode") if item.HasProp("_CIPCode") else ""
    return feature.labels.index(label) if label in feature.labels else feature.other

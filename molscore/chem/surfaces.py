"""Descriptors made of a property of each atom: charge, logP, refractivity, surface, E-state.

Each property is computed once for all that are made of it. Sums are taken in RDKit's order, so
the values are the same to the last bit.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from rdkit.Chem import MolSurf, rdMolDescriptors
from rdkit.Chem.EState import EState_VSA

from molscore.chem.facts import Facts, Floats

_BCUT: Final = (
    *("BCUT2D_MWHI", "BCUT2D_MWLOW", "BCUT2D_CHGHI", "BCUT2D_CHGLO"),
    *("BCUT2D_LOGPHI", "BCUT2D_LOGPLOW", "BCUT2D_MRHI", "BCUT2D_MRLOW"),
)


def estate_extremes(facts: Facts) -> dict[str, float]:
    """Return the largest and smallest E-state index, and the largest and smallest size of one."""
    indices = facts.estates
    sizes = np.abs(indices)
    return {
        "MaxAbsEStateIndex": float(sizes.max()),
        "MaxEStateIndex": float(indices.max()),
        "MinAbsEStateIndex": float(sizes.min()),
        "MinEStateIndex": float(indices.min()),
    }


def charge_extremes(facts: Facts) -> dict[str, float]:
    """All four or none: an extreme over values some of which are NaN depends on their order."""
    high, low = float(facts.charges.max()), float(facts.charges.min())
    small, large = sorted((abs(high), abs(low)))
    return {
        "MaxPartialCharge": high,
        "MinPartialCharge": low,
        "MaxAbsPartialCharge": large,
        "MinAbsPartialCharge": small,
    }


def crippen_sums(facts: Facts) -> dict[str, float]:
    """Return logP and molar refractivity: the sums over all atoms and hydrogens."""
    log_p, refractivity = facts.crippen_totals
    return {"MolLogP": log_p, "MolMR": refractivity}


def crippen_areas(facts: Facts) -> dict[str, float]:
    """Return SlogP_VSA and SMR_VSA: surface by the logP and refractivity of the atom."""
    log_p, refractivity = facts.crippen[: len(facts.atoms)].T
    return {
        **_binned("SlogP_VSA", log_p, facts.areas, MolSurf.logpBins),
        **_binned("SMR_VSA", refractivity, facts.areas, MolSurf.mrBins),
    }


def charge_areas(facts: Facts) -> dict[str, float]:
    """Return PEOE_VSA: surface by the charge of the atom."""
    if np.isnan(facts.charges).any():
        # RDKit's answer, whichever it is.
        return _numbered("PEOE_VSA", list(rdMolDescriptors.PEOE_VSA_(facts.mol)))
    return _binned("PEOE_VSA", facts.charges, facts.areas, MolSurf.chgBins)


def estate_areas(facts: Facts) -> dict[str, float]:
    """Return EState_VSA, surface by E-state index, and VSA_EState, index by surface."""
    return {
        **_binned("EState_VSA", facts.estates, facts.areas, EState_VSA.estateBins),
        **_binned("VSA_EState", facts.areas, facts.estates, EState_VSA.vsaBins),
    }


def burden_eigenvalues(facts: Facts) -> dict[str, float]:
    """Return the extreme eigenvalues of the Burden matrix with four properties on its diagonal.

    Raises:
        ValueError: where an atom has no parameters for its charge.

    Source: Pearlman and Smith, doi:10.1007/0-306-46857-3_18; RDKit `BCUT2D`.
    """
    if not facts.has_charge_parameters:
        raise ValueError("no parameters for the partial charge of an atom")
    log_p, refractivity = facts.crippen[: len(facts.atoms)].T.tolist()
    masses = [atom.GetMass() for atom in facts.atoms]
    values: list[float] = []
    for diagonal in (masses, facts.charges.tolist(), log_p, refractivity):
        values += rdMolDescriptors.BCUT2D(facts.mol, diagonal)
    return dict(zip(_BCUT, values, strict=True))


def _binned(name: str, keys: Floats, amounts: Floats, edges: Sequence[float]) -> dict[str, float]:
    """Add up the amounts of the atoms [n] between the edges of their keys [n]."""
    bins = np.searchsorted(edges, keys, side="right")
    return _numbered(name, np.bincount(bins, amounts, minlength=len(edges) + 1).tolist())


def _numbered(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}{i}": value for i, value in enumerate(values, 1)}

"""Descriptors that count: electrons, fragments, environments, stereo elements, and QED."""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from rdkit import Chem
from rdkit.Chem import QED, Descriptors, rdFingerprintGenerator, rdMolDescriptors

from molscore.chem.facts import Facts
from molscore.chem.patterns import Pattern, read_pattern

_RADII: Final = (1, 2, 3)
_MAX_SIMPLE_RINGS: Final = 20
"""Rings up to which RDKit's search for the smallest ones finds as many as are independent."""

_HYBRIDISATION: Final = {
    Chem.HybridizationType.SP: 1,
    Chem.HybridizationType.SP2: 2,
    Chem.HybridizationType.SP3: 3,
}
_OTHER_HYBRIDISATION: Final = 4


def electrons(facts: Facts) -> dict[str, float]:
    """Return NumValenceElectrons and NumRadicalElectrons."""
    charges = sum([atom.GetFormalCharge() for atom in facts.atoms])
    return {
        "NumValenceElectrons": int((facts.outer_electrons + facts.hydrogens).sum()) - charges,
        "NumRadicalElectrons": sum([atom.GetNumRadicalElectrons() for atom in facts.atoms]),
    }


def rotatable_bonds(facts: Facts) -> dict[str, float]:
    """Return NumRotatableBonds."""
    return {"NumRotatableBonds": facts.rotatable_bonds}


def fragments(block: Sequence[Facts], names: Sequence[str]) -> list[dict[str, float]]:
    """Return how often each of these fragments occurs in several molecules: `fr_*`."""
    known = _fragment_patterns()
    patterns = [known[name] for name in names]
    none: dict[str, float] = dict.fromkeys(names, 0)
    values = [none.copy() for _ in block]
    for facts, found in zip(block, values, strict=True):
        for i in facts.matcher.possible(patterns):
            found[names[i]] = facts.matcher.count(patterns[i])
    return values


@cache
def _fragment_patterns() -> dict[str, Pattern]:
    return {
        name: read_pattern(inspect.signature(function).parameters["pattern"].default)
        for name, function in Descriptors.descList
        if name.startswith("fr_")
    }


def environment_densities(facts: Facts) -> dict[str, float]:
    """Return FpDensityMorgan1 to 3: different environments up to a radius, per heavy atom."""
    details = rdFingerprintGenerator.AdditionalOutput()
    details.AllocateBitInfoMap()
    _morgan().GetSparseCountFingerprint(facts.mol, additionalOutput=details)
    smallest = [places[0][1] for places in details.GetBitInfoMap().values()]
    n_heavy = facts.mol.GetNumHeavyAtoms()
    return {
        f"FpDensityMorgan{radius}": sum([r <= radius for r in smallest]) / n_heavy
        if n_heavy
        else 0.0
        for radius in _RADII
    }


@cache
def _morgan() -> Any:
    return rdFingerprintGenerator.GetMorganGenerator(max(_RADII))


def spacial_score(facts: Facts) -> dict[str, float]:
    """Return SPS: mean over heavy atoms of hybridisation * stereo * ring * neighbours^2.

    Source: Krzyzanowski et al., doi:10.1021/acs.jmedchem.3c00689; RDKit `SpacialScore.SPS`.
    """
    # A copy, because potential stereo bonds are marked.
    mol = Chem.Mol(facts.mol)
    Chem.FindPotentialStereoBonds(mol)
    stereo = {
        element.centeredOn
        for element in Chem.FindPotentialStereo(mol)
        if element.type == Chem.StereoType.Atom_Tetrahedral
    }
    for bond, ends in zip(facts.bonds, facts.bond_ends, strict=True):
        if bond.GetBondType() == Chem.BondType.DOUBLE:
            twin = mol.GetBondWithIdx(bond.GetIdx())
            if twin.GetStereo() != Chem.BondStereo.STEREONONE:
                stereo.update(ends)
    score = 0
    for i, (atom, degree) in enumerate(zip(facts.atoms, facts.degrees.tolist(), strict=True)):
        share = _HYBRIDISATION.get(atom.GetHybridization(), _OTHER_HYBRIDISATION) * degree**2
        if i in stereo:
            share *= 2
        if atom.IsInRing() and not atom.GetIsAromatic():
            share *= 2
        score += share
    return {"SPS": score / mol.GetNumHeavyAtoms()}


def drug_likeness(facts: Facts) -> dict[str, float]:
    """Return QED, from its eight properties.

    Args:
        facts: of a plain molecule.

    Source: Bickerton et al., doi:10.1038/nchem.1243; RDKit `QED.qed`.
    """
    mol, matcher = facts.mol, facts.matcher
    acceptors, alerts = _drug_patterns()
    rdkit_qed: Any = QED
    properties = rdkit_qed.QEDproperties(
        MW=rdMolDescriptors._CalcMolWt(mol),
        ALOGP=facts.crippen_totals[0],
        HBA=sum([matcher.count(acceptors[i]) for i in matcher.possible(acceptors)]),
        HBD=rdMolDescriptors.CalcNumHBD(mol),
        PSA=rdMolDescriptors.CalcTPSA(mol),
        ROTB=facts.rotatable_bonds,
        AROM=_aromatic_rings(facts),
        ALERTS=sum([matcher.has(alerts[i]) for i in matcher.possible(alerts)]),
    )
    return {"qed": rdkit_qed.qed(mol, qedProperties=properties)}


@cache
def _drug_patterns() -> tuple[list[Pattern], list[Pattern]]:
    """Return acceptors of hydrogen bonds, and structural alerts."""
    return (
        [read_pattern(query) for query in QED.Acceptors],
        [read_pattern(query) for query in QED.StructuralAlerts],
    )


def _aromatic_rings(facts: Facts) -> int:
    """Return the number of rings that are left without the atoms of aliphatic ones."""
    n_rings = facts.mol.GetRingInfo().NumRings()
    if not n_rings:
        return 0
    if n_rings > _MAX_SIMPLE_RINGS:
        return len(Chem.GetSSSR(Chem.DeleteSubstructs(Chem.Mol(facts.mol), QED.AliphaticRings)))
    deleted = {match[0] for match in facts.mol.GetSubstructMatches(QED.AliphaticRings)}
    # Every bond within a component beyond those of a tree closes one ring.
    component = list(range(len(facts.atoms)))
    closed = 0
    for i, j in facts.bond_ends:
        if i in deleted or j in deleted:
            continue
        one, other = _root(component, i), _root(component, j)
        closed += one == other
        component[other] = one
    return closed


def _root(parents: Sequence[int], i: int) -> int:
    while parents[i] != i:
        i = parents[i]
    return i

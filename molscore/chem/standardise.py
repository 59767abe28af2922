"""Bring a parsed molecule to the one form its policy asks for."""

from functools import cache
from typing import Any, Final

from rdkit import Chem
from rdkit.Chem import rdMolDescriptors
from rdkit.Chem.MolStandardize import rdMolStandardize

from molscore.chem.policy import ChemPolicy

MAX_TAUTOMERS: Final = 100
MAX_TAUTOMER_TRANSFORMS: Final = 200

DUMMY: Final = Chem.MolFromSmarts("[#0]")
_HYDROGEN: Final = Chem.MolFromSmarts("[#1]")
_CARBON: Final = Chem.MolFromSmarts("[#6]")


def _hydrogen_rules() -> Any:
    """Every H that has one heavy neighbour goes, whatever RDKit would keep it for."""
    rules: Any = Chem.RemoveHsParameters()
    rules.removeDefiningBondStereo = True
    rules.removeNontetrahedralNeighbors = True
    rules.showWarnings = False
    return rules


_HYDROGEN_RULES: Final = _hydrogen_rules()


def standardise(mol: Any, policy: ChemPolicy, *, labelled: bool, hydrogens: bool) -> Any:
    """Apply a policy and the fixed rules of `ChemPolicy` to a sanitised molecule.

    The order is fixed: isotopes and atom maps, stereo, hydrogens, salts, charges, tautomers.

    Args:
        mol: RDKit Mol, sanitised, hydrogens as written. It may be changed in place.
        policy: the choices.
        labelled: whether isotopes or atom maps may be present.
        hydrogens: whether hydrogens may be among the atoms.

    Returns:
        RDKit Mol, sanitised, stereo perceived afresh.

    Raises:
        ValueError, RuntimeError: when RDKit cannot make a valid molecule of a step's result.
    """
    changed = labelled
    if labelled:
        for atom in mol.GetAtoms():
            atom.SetIsotope(0)
            atom.SetAtomMapNum(0)
    if policy.stereo == "drop":
        Chem.RemoveStereochemistry(mol)
        changed = True
    if hydrogens and mol.HasSubstructMatch(_HYDROGEN):
        mol = _without_hydrogens(mol)
        changed = True
    if policy.salts == "parent":
        mol = parent(mol)
    if policy.neutralize:
        mol = _neutral(mol)
        changed = True
    if policy.tautomers == "canonical":
        mol = _tautomers().Canonicalize(mol)
        changed = True
    if changed:
        Chem.SanitizeMol(mol)
        Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    return mol


def _without_hydrogens(mol: Any) -> Any:
    """Fold hydrogens into their heavy atoms.

    RDKit passes the direction of a bond to H on to the other single bond, with the wrong sign
    where that one closes a ring; the directions are therefore written anew from the stereo of
    the double bonds, which it keeps right.
    """
    for bond in mol.GetBonds():
        bond.SetBondDir(Chem.BondDir.NONE)
    mol = Chem.RemoveHs(mol, _HYDROGEN_RULES)
    Chem.SetDoubleBondNeighborDirections(mol)
    return mol


def parent(mol: Any) -> Any:
    """Return the main fragment of a molecule, or the molecule itself when it has but one.

    A fragment with carbon comes before one without; then the most heavy atoms, the largest
    mass and the first canonical SMILES decide, so equal sizes are settled independently of
    how the SMILES was written.
    """
    fragments = Chem.GetMolFrags(mol, asMols=True)
    if len(fragments) < 2:
        return mol
    return min(fragments, key=_fragment_rank)


def _fragment_rank(fragment: Any) -> tuple[bool, int, float, str]:
    return (
        not fragment.HasSubstructMatch(_CARBON),
        -fragment.GetNumHeavyAtoms(),
        -round(rdMolDescriptors.CalcExactMolWt(fragment), 4),
        Chem.MolToSmiles(fragment),
    )


def _neutral(mol: Any) -> Any:
    """Neutralise, or leave the charges where RDKit makes an impossible valence (PF6-)."""
    neutral = _uncharger().uncharge(mol)
    try:
        Chem.SanitizeMol(neutral)
    except Chem.MolSanitizeException:
        return mol
    return neutral


@cache
def _uncharger() -> Any:
    return rdMolStandardize.Uncharger(canonicalOrder=True)


@cache
def _tautomers() -> Any:
    enumerator = rdMolStandardize.TautomerEnumerator()
    enumerator.SetMaxTautomers(MAX_TAUTOMERS)
    enumerator.SetMaxTransforms(MAX_TAUTOMER_TRANSFORMS)
    return enumerator

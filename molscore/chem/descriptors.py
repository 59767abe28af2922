"""RDKit descriptors of a molecule, within bounds of time and range."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdPartialCharges
from rdkit.Chem.EState import EState

from molscore.chem.descriptor_names import DESCRIPTOR_NAMES
from molscore.chem.molecule import Molecule
from molscore.chem.scaling import DescriptorScaler
from molscore.errors import ConfigError

__all__ = ["DESCRIPTOR_NAMES", "MAX_DENSE_ATOMS", "DescriptorScaler", "compute_descriptors"]

MAX_DENSE_ATOMS: Final = 250
"""Most atoms for descriptors over pairs of atoms, over paths and from eigenvalues."""

MAX_EQUAL_RINGS: Final = 500
"""Most rings (RDKit's symmetrised set) for descriptors over pairs of rings."""

_LARGEST: Final = float(np.finfo(np.float32).max)
_ESTATE: Final = ("MaxAbsEStateIndex", "MaxEStateIndex", "MinAbsEStateIndex", "MinEStateIndex")
_CONTENT: Final = ("AvgIpc", "Ipc")
_CHARGES: Final = (
    *("MaxPartialCharge", "MinPartialCharge", "MaxAbsPartialCharge", "MinAbsPartialCharge"),
)
_DENSE_PREFIXES: Final = ("BCUT2D_", "EState_VSA", "VSA_EState", "Chi3", "Chi4")
_DENSE: Final = frozenset(
    name
    for name in DESCRIPTOR_NAMES
    if name in {*_ESTATE, *_CONTENT, "BalabanJ", "BertzCT", "Kappa3"}
    or name.startswith(_DENSE_PREFIXES)
)
_RING_PAIRS: Final = frozenset(("NumBridgeheadAtoms", "NumSpiroAtoms"))
# What RDKit's Python descriptors raise for a structure they are not defined for.
_UNDEFINED: Final = (ArithmeticError, ValueError, RuntimeError, LookupError, TypeError)


def compute_descriptors(
    molecules: Sequence[Molecule], names: Sequence[str] = DESCRIPTOR_NAMES
) -> NDArray[np.float64]:
    """Compute RDKit descriptors.

    They are taken from the canonical form of each molecule, so the way its SMILES was written
    does not reach the last digit. Two things differ from RDKit:

    - Descriptors over pairs of atoms, over long paths and from eigenvalues (`BCUT2D_*`,
      `BalabanJ`, `BertzCT`, the E-state family, `Ipc`, `AvgIpc`, `Chi3*`, `Chi4*`, `Kappa3`)
      grow with the cube of the size or faster; above `MAX_DENSE_ATOMS` atoms they are NaN, as
      are `NumSpiroAtoms` and `NumBridgeheadAtoms` above `MAX_EQUAL_RINGS` rings. Within the bounds
      the worst molecules tried (alkanes, proteins, diamondoids, graphenes, up to `MAX_ATOMS`)
      take 0.7 s, a drug-like one 5 ms.
    - `Ipc` and `AvgIpc` are computed by `information_content`; RDKit's recurrence loses all
      digits from some 80 atoms on, and seconds from 120.

    Args:
        molecules: parsed molecules.
        names: which descriptors, in the order of the columns.

    Returns:
        float64 [n_molecules, n_names]; NaN where RDKit defines no value (partial charges of a
        metal, for one), above the bound, and beyond the range of float32.

    Raises:
        ConfigError: when the installed RDKit does not know a name.
    """
    functions = _functions()
    for name in names:
        if name not in functions:
            raise ConfigError(
                f"descriptor {name!r} is not known to RDKit {rdBase.rdkitVersion}; "
                "use the RDKit version the model was trained with"
            )
    values = np.full((len(molecules), len(names)), np.nan)
    with rdBase.BlockLogs(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, molecule in enumerate(molecules):
            values[row] = _describe(_canonical(molecule.mol), names)
    values[~(np.abs(values) <= _LARGEST)] = np.nan
    return values


def _canonical(mol: Any) -> Any:
    """Renumber through the canonical SMILES; the copy also takes what RDKit caches on it."""
    canonical = Chem.MolFromSmiles(Chem.MolToSmiles(mol))
    return Chem.Mol(mol) if canonical is None else canonical


def _describe(mol: Any, names: Sequence[str]) -> list[float]:
    functions = _functions()
    skipped = _beyond_bounds(mol)
    values: dict[str, float] = dict.fromkeys(skipped, np.nan)
    for members, compute in _SHARED:
        if any(name in members and name not in skipped for name in names):
            values.update(_defined(compute, mol) or dict.fromkeys(members, np.nan))
    for name in names:
        if name not in values:
            value = _defined(functions[name], mol)
            values[name] = np.nan if value is None else float(value)
    return [values[name] for name in names]


def _beyond_bounds(mol: Any) -> frozenset[str]:
    """Return the descriptors that would cost seconds for this molecule."""
    dense = _DENSE if mol.GetNumAtoms() > MAX_DENSE_ATOMS else frozenset()
    many_rings = mol.GetRingInfo().NumRings() > MAX_EQUAL_RINGS
    return dense | (_RING_PAIRS if many_rings else frozenset())


def _defined(compute: Callable[[Any], Any], mol: Any) -> Any:
    """Return compute(mol), or None where RDKit defines no value."""
    try:
        return compute(mol)
    except _UNDEFINED:
        return None


@cache
def _functions() -> dict[str, Callable[[Any], float]]:
    return dict(Descriptors.descList)


def _estate(mol: Any) -> dict[str, float]:
    """One pass for the four indices RDKit would compute four times."""
    estate: Any = EState
    indices = np.asarray(estate.EStateIndices(mol, force=True))
    sizes = np.abs(indices)
    extremes = sizes.max(), indices.max(), sizes.min(), indices.min()
    return dict(zip(_ESTATE, map(float, extremes), strict=True))


def _content(mol: Any) -> dict[str, float]:
    average, total = information_content(Chem.GetAdjacencyMatrix(mol).astype(np.float64))
    return {"AvgIpc": average, "Ipc": total}


def _charges(mol: Any) -> dict[str, float]:
    """All four or none: an extreme over values some of which are NaN depends on their order."""
    rdPartialCharges.ComputeGasteigerCharges(mol)
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()])
    high, low = charges.max(), charges.min()
    sizes = sorted((abs(high), abs(low)))
    extremes = high, low, sizes[1], sizes[0]
    return dict(zip(_CHARGES, map(float, extremes), strict=True))


_SHARED: Final = ((_ESTATE, _estate), (_CONTENT, _content), (_CHARGES, _charges))


def information_content(adjacency: NDArray[np.float64]) -> tuple[float, float]:
    r"""Return the information content of a graph's characteristic polynomial.

        p_k = |c_k| / sum |c|,    AvgIpc = -sum p_k log2 p_k,    Ipc = sum |c| * AvgIpc

    with c_k the coefficients of det(z - A). They are taken from the values of the polynomial,
    the product of (z - eigenvalue), at the (n+1)-th roots of unity by a Fourier transform:
    since no value exceeds sum |c|, the error is some n * 1e-16 of that sum at any size.

    Args:
        adjacency: float64 [n, n], symmetric, 0 or 1.

    Returns:
        AvgIpc in bits, and Ipc, which is infinite where it leaves the range of float64.

    Source: Bonchev and Trinajstic, doi:10.1063/1.434593; RDKit `GraphDescriptors.Ipc`, which
        this equals wherever the latter is accurate.
    """
    eigenvalues = np.linalg.eigvalsh(adjacency)
    n = len(eigenvalues)
    roots = np.exp(2j * np.pi * np.arange(n + 1) / (n + 1))
    factors = roots[:, None] - eigenvalues
    # Moduli and phases apart: the product itself may leave the range of float64.
    log_size = np.log(np.maximum(np.abs(factors), 1e-300)).sum(axis=1)
    largest = log_size.max()
    values = np.exp(log_size - largest + 1j * np.angle(factors).sum(axis=1))
    coefficients = np.abs(np.fft.fft(values)) / (n + 1)
    scale = coefficients.sum()
    shares = coefficients[coefficients > 0] / scale
    average = float(-(shares * np.log2(shares)).sum())
    with np.errstate(over="ignore"):
        return average, float(np.exp(largest + np.log(scale)) * average)

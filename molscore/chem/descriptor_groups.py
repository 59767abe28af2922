"""Which descriptors are computed together, by what, and what that costs.

Microseconds for a drug-like molecule (21 atoms, one core), asked for alone, beyond the 180 that
its canonical form costs; `RDKit` is the same by one function a descriptor, as far as these do
not share:

| group | descriptors | here | RDKit | needs |
| --- | --- | --- | --- | --- |
| E-state indices | 4 | 100 | 230 | distances |
| `EState_VSA*`, `VSA_EState*` | 21 | 140 | 270 | E-state, surfaces |
| partial charges | 4 | 60 | 70 | Gasteiger charges |
| `PEOE_VSA*` | 14 | 90 | 150 | Gasteiger charges, surfaces |
| `MolLogP`, `MolMR` | 2 | 300 | 300 | Crippen's types of atoms and hydrogens |
| `SlogP_VSA*`, `SMR_VSA*` | 22 | 320 | 190 | Crippen's types, surfaces |
| `BCUT2D_*` | 8 | 450 | 420 | charges, Crippen's types, eigenvalues |
| `Ipc`, `AvgIpc` | 2 | 70 | 230 | eigenvalues |
| `BalabanJ` | 1 | 80 | 100 | bonds, distances |
| `BertzCT` | 1 | 150 | 250 | bonds, distances |
| `Chi0`, `Chi1` | 2 | 80 | 100 | bonds |
| `Chi2*` to `Chi4*`, `Kappa2`, `Kappa3`, `Phi` | 9 | 150 | 550 | paths |
| electrons | 2 | 60 | 80 | atoms |
| `NumRotatableBonds` | 1 | 75 | 75 | a pattern |
| `FpDensityMorgan*` | 3 | 80 | 120 | one fingerprint |
| `SPS` | 1 | 150 | 230 | stereo elements |
| `qed` | 1 | 700 | 1,200 | Crippen's types, rotatable bonds, patterns |
| `fr_*` | 85 | 300 | 470 | patterns |
| the rest, one by one | 34 | 70 | 70 | |
| all | 217 | 1,800 | 5,500 | everything above once |
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple

from molscore.chem import counts, surfaces, topology
from molscore.chem.facts import Facts

# What RDKit raises for a structure a descriptor is not defined for.
UNDEFINED: Final = (ArithmeticError, ValueError, RuntimeError, LookupError, TypeError)

Values = Mapping[str, float]
Names = tuple[str, ...]


def _always(_: Facts) -> bool:
    return True


def _plain(facts: Facts) -> bool:
    return facts.is_plain


def _few_paths(facts: Facts) -> bool:
    return facts.few_paths


class Group(NamedTuple):
    """Descriptors that are computed together.

    Attributes:
        members: their names, or the patterns of them (`fnmatch`).
        compute: gives them for several molecules, from the facts and the names asked for; what
            is not in the answer is not defined.
        fits: whether it can be asked about a molecule; if not, RDKit is.
    """

    members: Names
    compute: Callable[[Sequence[Facts], Names], Sequence[Values]]
    fits: Callable[[Facts], bool]


def _each(
    members: str, compute: Callable[[Facts], Values], fits: Callable[[Facts], bool] = _always
) -> Group:
    """Return a group that is computed molecule by molecule."""

    def compute_all(block: Sequence[Facts], _: Names) -> list[Values]:
        return [_defined(compute, facts) for facts in block]

    return Group(tuple(members.split()), compute_all, fits)


def _defined(compute: Callable[[Facts], Values], facts: Facts) -> Values:
    try:
        return compute(facts)
    except UNDEFINED:
        return {}


GROUPS: Final = (
    _each("*EStateIndex", surfaces.estate_extremes),
    _each("EState_VSA* VSA_EState*", surfaces.estate_areas),
    _each("*PartialCharge", surfaces.charge_extremes),
    _each("PEOE_VSA*", surfaces.charge_areas),
    _each("MolLogP MolMR", surfaces.crippen_sums, _plain),
    _each("SlogP_VSA* SMR_VSA*", surfaces.crippen_areas, _plain),
    _each("BCUT2D_*", surfaces.burden_eigenvalues, _plain),
    _each("AvgIpc Ipc", topology.content),
    _each("BalabanJ", topology.balaban, _plain),
    _each("BertzCT", topology.complexity, _plain),
    _each("Chi0 Chi1", topology.connectivity),
    Group(("Chi[234][nv]", "Kappa[23]", "Phi"), topology.path_connectivity, _few_paths),
    _each("NumValenceElectrons NumRadicalElectrons", counts.electrons),
    _each("NumRotatableBonds", counts.rotatable_bonds),
    _each("FpDensityMorgan*", counts.environment_densities),
    _each("SPS", counts.spacial_score),
    _each("qed", counts.drug_likeness, _plain),
    Group(("fr_*",), counts.fragments, _always),
)
"""All other descriptors are single functions of RDKit that take a few microseconds."""


class Plan(NamedTuple):
    """How to come by some descriptors: in groups, and one by one from RDKit."""

    groups: tuple[tuple[Group, Names], ...]
    single: Names


@lru_cache(maxsize=64)
def plan(names: Names) -> Plan:
    """Return how to compute these descriptors: nothing that none of them needs."""
    left = dict.fromkeys(names)
    groups = []
    for group in GROUPS:
        asked = tuple(name for name in left if _is_member(name, group))
        if asked:
            groups.append((group, asked))
            left = {name: None for name in left if name not in asked}
    return Plan(tuple(groups), tuple(left))


def _is_member(name: str, group: Group) -> bool:
    return any(fnmatchcase(name, member) for member in group.members)

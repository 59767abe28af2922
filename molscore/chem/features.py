"""The vocabulary of atom and bond features: what every integer code means.

Numpy-free and RDKit-free, so that a model can be built or loaded without chemistry.
"""

from dataclasses import dataclass
from typing import Final

FEATURIZER_VERSION: Final = 1
"""Stored in bundles; any change of the features or their codes raises it."""

OTHER: Final = "other"


@dataclass(frozen=True)
class Feature:
    """One categorical feature.

    Attributes:
        name: what it describes.
        labels: code `i` means `labels[i]`; the last label is always `other`, so no value is
            without a code.
    """

    name: str
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def other(self) -> int:
        """The code of a value outside the vocabulary."""
        return len(self.labels) - 1


ELEMENTS: Final = (
    *("H", "Li", "Be", "B", "C", "N", "O", "F", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "K"),
    *("Ca", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br"),
    *("Rb", "Sr", "Zr", "Mo", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Cs"),
    *("Ba", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi"),
)


def _numbers(first: int, last: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(first, last + 1))


_RINGS: Final = ("0", *_numbers(3, 8), OTHER)

ATOM_FEATURES: Final = (
    Feature("element", (*ELEMENTS, OTHER)),
    Feature("group", (*_numbers(1, 18), OTHER)),  # f-block elements: other
    Feature("period", (*_numbers(1, 7), OTHER)),
    Feature("degree", (*_numbers(0, 6), OTHER)),
    Feature("charge", (*_numbers(-2, 3), OTHER)),
    Feature("hydrogens", (*_numbers(0, 4), OTHER)),
    Feature(
        # The pattern of incident bond orders. A `dative` atom has a bond that is none of
        # single, double, triple and aromatic; that outranks its other bonds.
        "bonding",
        (
            *("single", "double", "two-double", "triple"),
            *("aromatic-2", "aromatic-3", "aromatic-double", "dative", OTHER),
        ),
    ),
    Feature("ring", _RINGS),  # size of the smallest ring through the atom, 0 without one
    Feature("cip", ("none", "R", "S", "r", "s", OTHER)),  # r, s: pseudo-asymmetric centres
)

BOND_FEATURES: Final = (
    Feature("order", ("single", "double", "triple", "aromatic", "dative", OTHER)),
    Feature("ring", _RINGS),  # size of the smallest ring through the bond, 0 without one
    Feature("stereo", ("none", "E", "Z", OTHER)),
)


def position(features: tuple[Feature, ...], name: str) -> int:
    """Return the column of a feature among the codes."""
    return next(i for i, feature in enumerate(features) if feature.name == name)


ELEMENT: Final = position(ATOM_FEATURES, "element")
CHARGE: Final = position(ATOM_FEATURES, "charge")

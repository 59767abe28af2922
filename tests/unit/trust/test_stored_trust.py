"""What a bundle carries of trust: the same after a round trip, refused where it makes no sense."""

import dataclasses

import numpy as np
import pytest
from trusting_bundle import KNOWN, trust, trusting

from molscore.errors import BundleError
from molscore.trust.stored import read_trust


def test_a_round_trip_changes_nothing() -> None:
    there, back = trust(), read_trust(trusting())
    assert back is not None
    assert back.atoms == there.atoms
    assert back.structures is not None
    assert back.structures.smiles == KNOWN
    for name, array in there.to_arrays().items():
        np.testing.assert_array_equal(back.to_arrays()[name], array)


def test_without_structures_nothing_of_them_is_there() -> None:
    bundle = trusting(structures=False)
    back = read_trust(bundle)
    assert back is not None
    assert back.structures is None
    assert not any("smiles" in name or "fingerprints" in name for name in bundle.arrays)


def test_an_early_bundle_carries_none() -> None:
    assert read_trust(dataclasses.replace(trusting(), arrays={})) is None


CHANGES = {
    "trust/atoms": np.array([[0, 0]]),
    "trust/fingerprints": np.zeros((len(KNOWN), 64), dtype=np.uint8),
    "trust/values": np.zeros((len(KNOWN) + 1, 1), dtype=np.float32),
    "trust/threshold": np.array([np.nan]),
    "trust/smiles": np.frombuffer(b"C\nCC", dtype=np.uint8),
    "trust/0/scores": np.array([2.0, 1.0]),
    "trust/0/scale": np.array([np.inf]),
    "trust/0/steps": np.array([[99.0, 0, 1, 1]]),
    "trust/1/scores": np.array([1.0]),
    "trust/other": np.array([1.0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    bundle = trusting()
    odd = dataclasses.replace(bundle, arrays={**bundle.arrays, name: CHANGES[name]})
    with pytest.raises(BundleError, match=name):
        read_trust(odd)


@pytest.mark.parametrize("name", [n for n in CHANGES if "1" not in n and "other" not in n])
def test_what_is_missing_is_named(name: str) -> None:
    bundle = trusting()
    arrays = {key: array for key, array in bundle.arrays.items() if key != name}
    with pytest.raises(BundleError, match=name):
        read_trust(dataclasses.replace(bundle, arrays=arrays))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("trust/smiles", np.frombuffer(b"\xff\xfe", dtype=np.uint8)),
        ("trust/values", np.full((len(KNOWN), 1), np.inf, dtype=np.float32)),
        ("trust/0/steps", np.array([[0.0, 1.0, 1.0, 1.0]])),
        ("trust/0/steps", np.array([[0.0, 0.0, 1.0, np.nan]])),
        ("trust/0/steps", np.array([[0.5, 0.0, 1.0, 1.0]])),
        ("trust/0/steps", np.tile([[0.0, 0.0, 1.0, 1.0]], (1001, 1))),
        ("trust/atoms", np.tile([[6, 0]], (5001, 1))),
        *(
            ("trust/smiles", np.frombuffer(f"{odd}\nC\nC\nC\nC".encode(), dtype=np.uint8))
            for odd in ("C\x1b[31m", "C\0", "=1+1", "C C", "C\tC")
        ),
    ],
)
def test_values_are_looked_at(name: str, array: np.ndarray) -> None:
    bundle = trusting()
    with pytest.raises(BundleError, match=name):
        read_trust(dataclasses.replace(bundle, arrays={**bundle.arrays, name: array}))

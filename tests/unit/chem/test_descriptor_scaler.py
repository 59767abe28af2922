"""The scaler: always finite, in the range it promises, stored without loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from molscore.chem.descriptors import DESCRIPTOR_NAMES, DescriptorScaler, compute_descriptors
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.errors import BundleError


def names(d):
    return [f"d{j}" for j in range(d)]


def test_equals_standard_scaling_on_tame_columns():
    values = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    scaler = DescriptorScaler.fit(values, names(3))
    expected = StandardScaler().fit_transform(values)
    np.testing.assert_allclose(scaler.transform(values), expected, rtol=1e-5, atol=1e-6)


def test_columns_without_spread_or_values_become_zero():
    values = np.array([[5.0, np.nan, 1e300, 0.1], [5.0, np.nan, np.nan, 0.1 + 2e-17]])
    scaler = DescriptorScaler.fit(values, names(4))
    np.testing.assert_allclose(scaler.transform(values), np.zeros((2, 4)), atol=1e-12)
    np.testing.assert_array_equal(scaler.scale, np.ones(4))
    assert np.abs(scaler.transform(values + 1e6)).max() <= 10


def test_missing_values_take_the_training_median_whatever_the_batch():
    values = np.array([[1.0], [2.0], [9.0], [np.nan]])
    scaler = DescriptorScaler.fit(values, names(1))
    alone = scaler.transform(np.array([[np.nan]]))
    among = scaler.transform(np.array([[np.nan], [9.0], [9.0]]))
    assert alone[0] == among[0] == scaler.transform(np.array([[2.0]]))[0]


def test_an_outlier_does_not_flatten_its_column():
    ordinary = np.linspace(1.0, 2.0, 999)
    values = np.append(ordinary, 1e37)[:, None]
    scores = DescriptorScaler.fit(values, names(1)).transform(values)[:, 0]
    assert scores[:-1].std() > 0.9
    assert 1 < scores[-1] <= 10


def test_a_rare_group_is_not_clipped_away():
    values = np.zeros((1000, 1))
    values[17] = 2.0
    scaler = DescriptorScaler.fit(values, names(1))
    assert scaler.transform(np.array([[2.0]]))[0, 0] == 10
    assert scaler.transform(np.array([[0.0]]))[0, 0] == pytest.approx(0, abs=0.1)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    arrays(np.float64, st.tuples(st.integers(0, 6), st.just(3)), elements=st.floats(width=64)),
    arrays(np.float64, st.tuples(st.integers(0, 4), st.just(3)), elements=st.floats(width=64)),
)
def test_finite_whatever_comes_in(training, later):
    scaler = DescriptorScaler.fit(training, names(3))
    for values in (training, later):
        scores = scaler.transform(values)
        assert scores.dtype == np.float32
        assert scores.shape == values.shape
        assert np.isfinite(scores).all()
        assert (np.abs(scores) <= 10).all()
    for array in scaler.to_arrays().values():
        assert np.isfinite(array).all()


def test_molecules_with_explosive_descriptors_in_the_training_data():
    texts = ["N[C@@H](C)C(=O)" * 25 + "O", "C" * 150, "C" * 170, "C" * 500, "CCO", "C", "[Na+]"]
    values = compute_descriptors([parse_smiles(text, ChemPolicy()) for text in texts])
    scaler = DescriptorScaler.fit(values)
    assert scaler.names == DESCRIPTOR_NAMES
    assert np.isfinite(scaler.transform(values)).all()
    for array in scaler.to_arrays().values():
        assert np.isfinite(array.astype(np.float32)).all()


def test_arrays_round_trip():
    values = np.random.default_rng(1).normal(size=(20, 2))
    scaler = DescriptorScaler.fit(values, ["MolWt", "größe"])
    again = DescriptorScaler.from_arrays(scaler.to_arrays())
    assert again.names == scaler.names
    np.testing.assert_array_equal(again.transform(values), scaler.transform(values))
    nothing = DescriptorScaler.fit(np.empty((5, 0)), [])
    assert DescriptorScaler.from_arrays(nothing.to_arrays()).names == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"median": None}, "'median' is missing"),
        ({"mean": np.zeros(3)}, "shape"),
        ({"lower": np.array([np.nan, 0.0])}, "NaN"),
        ({"scale": np.array([1.0, 0.0])}, "not positive"),
        ({"names": np.array([255], dtype=np.uint8)}, "UTF-8"),
    ],
)
def test_damaged_arrays_are_refused(change, words):
    arrays = DescriptorScaler.fit(np.eye(2), names(2)).to_arrays() | change
    kept = {name: array for name, array in arrays.items() if array is not None}
    with pytest.raises(BundleError, match=words):
        DescriptorScaler.from_arrays(kept)


@pytest.mark.parametrize("shape", [(2, 3), (2,)])
def test_another_number_of_columns_is_refused(shape):
    scaler = DescriptorScaler.fit(np.eye(2), names(2))
    with pytest.raises(ValueError, match=r"expected \[n, 2\]"):
        scaler.transform(np.zeros(shape))

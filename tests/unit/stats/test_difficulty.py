"""The scale of residuals as a sum of piecewise linear functions."""

import numpy as np

from molscore.stats.difficulty import Difficulty


def made() -> Difficulty:
    return Difficulty(
        intercept=np.log(2.0),
        feature=np.array([0, 0, 1]),
        start=np.array([0.0, 1.0, 10.0]),
        end=np.array([1.0, 3.0, 20.0]),
        climb=np.array([1.0, -2.0, 0.5]),
    )


def test_it_is_the_interpolation_of_its_knots() -> None:
    x = np.stack([np.linspace(-1, 5, 50), np.linspace(0, 30, 50)], axis=1)
    wanted = (
        np.log(2.0)
        + np.interp(x[:, 0], [0, 1, 3], [0, 1, -1])
        + np.interp(x[:, 1], [10, 20], [0, 0.5])
    )
    np.testing.assert_allclose(np.log(made().scale(x)), wanted)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    x = np.random.default_rng(0).normal(5, 10, (1000, 2))
    whole = made().scale(x)
    np.testing.assert_array_equal(whole[17:18], made().scale(x[17:18]))


def test_what_is_far_away_stays_finite() -> None:
    steep = Difficulty(0.0, np.array([0]), np.zeros(1), np.ones(1), np.array([1e6]))
    assert np.isfinite(steep.scale(np.array([[5.0], [-5.0]]))).all()
    nothing = Difficulty(0.0, np.empty(0, dtype=np.int64), *(np.empty(0) for _ in range(3)))
    assert nothing.scale(np.zeros((3, 4))).tolist() == [1.0, 1.0, 1.0]

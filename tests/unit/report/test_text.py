"""Reports: what a number is of, beside the number."""

from molscore.report.text import cross_validation, learned_units


def of_target(transform: str) -> dict[str, object]:
    return {
        "transform": transform,
        "folds": [{"fold": 0, "rmse": 0.4}, {"fold": 1, "rmse": 0.6}],
        "pooled": {"rmse": 0.5, "n": 9},
        "mean": {"rmse": 0.5},
        "sd": {"rmse": 0.1},
    }


def test_the_closing_line_says_when_units_are_transformed() -> None:
    plain, log = cross_validation({"a": of_target("none"), "b": of_target("log10")})
    assert plain == "a: mean over 2 held-out folds: rmse 0.5 +- 0.1"
    assert log == "b: mean over 2 held-out folds, in log10 units: rmse 0.5 +- 0.1"


def test_students_stand_beside_their_teacher() -> None:
    student = of_target("none") | {
        "kind": "regression",
        "teacher": {"mean": {"rmse": 0.4}},
        "against_teacher": {"mean": {"rmse": 0.2}},
    }
    _, value = cross_validation({"a": student})
    assert value == (
        "a: the experts it learned from have rmse 0.4; student and expert differ by rmse 0.2"
    )
    _, share = cross_validation({"a": student | {"kind": "classification"}})
    assert share == f"{value} of the probability"


def test_units_are_told_of_transformed_targets_alone() -> None:
    (line,) = learned_units({"a": "none", "b": "ln"})
    assert line == "b: metrics are in ln units, predictions in those of the table"


def test_rows_a_start_was_not_trained_on_are_told_apart():
    scores = of_target("none")
    some = scores | {"others": {"mean": {"rmse": 0.75}, "pooled": {"n": 3}}}
    none = scores | {"others": {"mean": {"rmse": None}, "pooled": {"n": 0}}}
    _, line = cross_validation({"y": some})
    assert line.startswith("y: on the 3 rows") and line.endswith("never saw: rmse 0.75")
    _, line = cross_validation({"y": none})
    assert line.endswith("there is no clean figure")
    every = scores | {"others": {"mean": {"rmse": 0.5}, "pooled": {"n": 9}}}
    assert len(cross_validation({"y": every})) == 1  # the figures would be the same again


def test_a_metric_says_in_how_many_folds_it_is_undefined():
    target = of_target("none") | {
        "mean": {"mcc": -0.1, "f1": None},
        "sd": {"mcc": None, "f1": None},
    }
    target["folds"] = [{"fold": 0, "mcc": -0.1, "f1": None}, {"fold": 1, "mcc": None, "f1": None}]
    (line,) = cross_validation({"y": target})
    assert line.endswith(": mcc -0.1 (undefined in 1 of 2 folds), f1 -")


def test_averaged_repeats_have_a_line_of_their_own():
    target = of_target("none") | {"averaged_mean": {"rmse": 0.45}}
    _, line = cross_validation({"y": target})
    assert line == "y: with the repeats of a fold averaged: rmse 0.45"

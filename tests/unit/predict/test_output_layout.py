import pytest

from molscore.predict.layout import Answer, output_layout

ONE = Answer(("y",))
TWO = Answer(("y", "log S"))
OURS = ["pred_y", "pred_y_sd", "status", "error"]


def test_input_columns_pass_and_ours_follow() -> None:
    layout = output_layout(["smiles", "y ", "y ", "acid"], ONE)
    assert layout.columns == ["smiles", "y ", "y ", "acid", *OURS]
    assert layout.kept == [0, 1, 2, 3]
    assert layout.numbers == ["pred_y", "pred_y_sd"]
    assert (layout.replaced, layout.renamed) == ([], {})


def test_targets_keep_their_order_and_names() -> None:
    assert output_layout(["s"], TWO).columns == [
        *("s", "pred_y", "pred_y_sd", "pred_log S", "pred_log S_sd", "status", "error"),
    ]


def test_a_true_label_is_never_overwritten() -> None:
    layout = output_layout(["smiles", "y"], ONE)
    assert layout.columns[:2] == ["smiles", "y"]


def test_predicting_on_our_own_output_replaces_our_columns() -> None:
    first = output_layout(["smiles", "id"], ONE)
    second = output_layout(first.columns, ONE)
    assert second.columns == first.columns
    assert second.replaced == OURS
    assert second.kept == [0, 1]


def test_columns_behind_ours_do_not_hide_them() -> None:
    layout = output_layout(["smiles", *OURS, "note"], ONE)
    assert layout.columns == ["smiles", "note", *OURS]


def test_the_prediction_of_another_model_stays() -> None:
    layout = output_layout(["smiles", "pred_z", "pred_z_sd", "status", "error"], ONE)
    assert layout.columns == ["smiles", "pred_z", "pred_z_sd", *OURS]
    assert layout.replaced == ["status", "error"]


@pytest.mark.parametrize("own", ["status", "error", "pred_y", "pred_y_sd"])
def test_a_column_of_the_user_stays_and_ours_gets_a_number(own: str) -> None:
    layout = output_layout(["smiles", own], ONE)
    assert layout.columns[:2] == ["smiles", own]
    assert layout.renamed == {own: f"{own}_2"}
    assert layout.columns[2:] == [f"{name}_2" if name == own else name for name in OURS]
    # And again on that output: the same columns, the user's still there.
    assert output_layout(layout.columns, ONE).columns == layout.columns


def test_status_and_error_without_predictions_are_the_users() -> None:
    layout = output_layout(["smiles", "status", "error"], ONE)
    assert layout.columns == [
        *("smiles", "status", "error", "pred_y", "pred_y_sd", "status_2", "error_2"),
    ]


def test_a_target_may_be_called_anything() -> None:
    layout = output_layout(["pred_(.*", "smiles"], Answer(("(.*",)))
    assert layout.columns == [
        *("pred_(.*", "smiles", "pred_(.*_2", "pred_(.*_sd", "status", "error"),
    ]
    assert output_layout(layout.columns, Answer(("(.*",))).columns == layout.columns


def test_targets_that_end_in_numbers_are_told_apart() -> None:
    first = output_layout(["smiles"], Answer(("y_2",)))
    both = output_layout(first.columns, Answer(("y_3",)))
    assert both.columns[1:5] == ["pred_y_2", "pred_y_2_sd", "pred_y_3", "pred_y_3_sd"]
    other = output_layout(first.columns, ONE)
    assert other.columns[1:5] == ["pred_y_2", "pred_y_2_sd", "pred_y", "pred_y_sd"]


def test_what_was_said_of_other_targets_stays_theirs() -> None:
    one = Answer(("y",), (True,), ("similarity", "in_domain"), (True, False))
    first = output_layout(["smiles"], one)
    assert first.numbers == ["pred_y", "pred_y_sd", "pred_y_lo", "pred_y_hi", "similarity"]
    assert output_layout(first.columns, one).columns == first.columns
    other = output_layout(first.columns, Answer(("z",), (False,), ("similarity",), (True,)))
    assert other.columns == [
        *("smiles", "pred_y", "pred_y_sd", "pred_y_lo", "pred_y_hi", "similarity", "in_domain"),
        *("pred_z", "pred_z_sd", "similarity_2", "status", "error"),
    ]

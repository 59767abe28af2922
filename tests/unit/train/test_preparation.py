"""From tables to training data: what is used, what is left out, and what is said."""

import numpy as np
import pytest

from molscore.chem.policy import ChemPolicy
from molscore.data.targets import read_labelled
from molscore.errors import ConfigError, InputError
from molscore.train.prepare import prepare

POLICY = ChemPolicy()


def table(tmp_path, text, **options):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return read_labelled(path, **options)


def ready(labelled, *, split="random", n_folds=2, folds=None, descriptors=False, **more):
    return prepare(
        labelled,
        policy=POLICY,
        split=split,
        n_folds=n_folds,
        seed=0,
        descriptors=descriptors,
        workers=1,
        folds=folds,
        **more,
    )


ALKANES = "smiles,y\n" + "".join(f"{'C' * n},{n}\n" for n in range(1, 11))


def test_rows_that_cannot_be_used_are_left_out_and_counted(tmp_path):
    text = ALKANES + "CC1=CC=C[NH+2]([O-])C1,0.5\n,3\nCCO,\nCCN,<2\nCCl,-\n*C,1\n"
    done = ready(table(tmp_path, text))
    assert done.counts["rows_read"] == 16
    assert done.counts["rows_used"] == 10
    assert [f.status for f in done.failures] == ["invalid_smiles", "empty", "unsupported"]
    assert [f.row for f in done.failures] == [10, 11, 15]
    assert done.counts["labels_rejected"] == 2
    assert done.counts["rows_without_label"] == 3
    assert done.data.table_rows.tolist() == list(range(10))


def test_the_same_structure_stays_in_one_fold_and_disagreement_is_told(tmp_path):
    text = ALKANES + "OCC,1\nCCO,2\nC(C)O,1\nc1ccccc1,5\nC1=CC=CC=C1,5\n"
    done = ready(table(tmp_path, text), n_folds=5)
    folds = done.data.folds
    assert len(set(folds[10:13].tolist())) == 1
    assert folds[13] == folds[14]
    assert any("5 rows hold 2 structures (stereo aside) more than once" in w for w in done.warnings)
    assert any("1 of them carry different values of 'y'" in w for w in done.warnings)


def test_a_table_that_is_excluded_whole_says_so(tmp_path):
    labelled = table(tmp_path, "smiles,y\nCCO,1\nCCN,2\n")
    keys = frozenset(ready(labelled, n_folds=2).keys)
    with pytest.raises(InputError, match=r"0 different usable .* and 2 hold an excluded structure"):
        ready(labelled, n_folds=2, exclude=keys)


def test_a_folds_file_is_obeyed_and_crossing_is_told(tmp_path):
    labelled = table(tmp_path, "smiles,y\nCCO,1\nOCC,1\nCCN,2\nCCC,3\n")
    done = ready(labelled, folds=np.array([0, 1, 0, 1]))
    assert done.data.folds.tolist() == [0, 1, 0, 1]
    assert any("1 structure into more than one fold" in w for w in done.warnings)


def test_a_fold_without_a_usable_row_is_told(tmp_path):
    labelled = table(tmp_path, "smiles,y\nCCO,1.5\nCCN,2.5\nbad!,3.5\n")
    done = ready(labelled, folds=np.array([0, 1, 2]), n_folds=3)
    assert any("in fold 2 (counted from 0)" in w for w in done.warnings)


def test_an_expert_without_anything_to_learn_from_is_refused(tmp_path):
    labelled = table(tmp_path, "smiles,y\nCCO,1.5\nCCN,2.5\nbad!,3.5\nC(,4.5\n")
    with pytest.raises(InputError, match="all usable values of 'y' lie in fold 0"):
        ready(labelled, folds=np.array([0, 0, 1, 1]))
    rows = "".join(f"{'C' * n},{n}.5,{'3.5' if n == 1 else ''}\n" for n in range(1, 9))
    labelled = table(tmp_path, "smiles,a,b\n" + rows, targets=["a", "b"])
    with pytest.raises(InputError, match="all usable values of 'b' lie in fold"):
        ready(labelled)
    assert ready(labelled, n_folds=1).counts["folds"] == 1


@pytest.mark.parametrize("n_rows", [2, 3])
def test_few_rows_take_as_many_folds_as_there_are_structures(tmp_path, n_rows):
    text = "smiles,y\n" + "".join(f"{'C' * n},{n}\n" for n in range(1, n_rows + 1))
    done = ready(table(tmp_path, text), n_folds=5)
    assert done.counts["folds"] == n_rows
    assert any(f"using {n_rows}" in w for w in done.warnings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("smiles,y\nC,1\n", "1 different usable structure in 1 rows"),
        ("smiles,y\nCCO,1\nOCC,2\n", "1 different usable structure in 2 rows"),
        ("smiles,y\nxx,1\nyy,2\n", r"0 different usable structures.*The first: line 2"),
    ],
)
def test_too_little_to_train_on_says_how_much_is_needed(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        ready(table(tmp_path, text, targets=["y"], kind="regression"))
    assert "at least 2" in str(caught.value)


def test_one_fold_holds_nothing_out_and_says_so(tmp_path):
    done = ready(table(tmp_path, ALKANES), n_folds=1)
    assert set(done.data.folds.tolist()) == {-1}
    assert any("no cross-validation" in w for w in done.warnings)


def test_constant_targets_and_rare_classes_are_told(tmp_path):
    rows = "".join(f"{'C' * n},7,{int(n == 1)}\n" for n in range(1, 11))
    labelled = table(tmp_path, "smiles,y,toxic\n" + rows, targets=["y", "toxic"])
    done = ready(labelled)
    assert done.data.is_class == (False, True)
    assert any("'y' holds only one value (7)" in w for w in done.warnings)
    assert any("the rarer class has only 1 rows" in w for w in done.warnings)


def test_values_beyond_single_precision_are_refused_before_training(tmp_path):
    text = "smiles,y\nC,1\nCC,-2e300\n"
    with pytest.raises(InputError, match=r"'y' holds -2e\+300, which single precision"):
        ready(table(tmp_path, text))
    assert ready(table(tmp_path, text.replace("-", ""), transform="log10")).data.n_targets == 1


def test_the_transform_reaches_the_data(tmp_path):
    labelled = table(tmp_path, "smiles,y\nC,1\nCC,10\nCCC,1000\n", transform="log10")
    assert ready(labelled).data.values[:, 0].tolist() == [0.0, 1.0, 3.0]


def test_groups_and_times_come_from_their_columns(tmp_path):
    rows = "".join(f"{'C' * n},{n},{'ab'[n % 2]},{2000 + n}\n" for n in range(1, 9))
    labelled = table(tmp_path, "smiles,y,batch,year\n" + rows, targets=["y"])
    by_group = ready(labelled, split="group:batch").data.folds
    assert len(set(by_group[::2].tolist())) == len(set(by_group[1::2].tolist())) == 1
    by_time = ready(labelled, split="time:year").data.folds
    assert by_time.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(ConfigError, match=r"--split group: 'lot' is not a column\. The columns"):
        ready(labelled, split="group:lot")


def test_the_column_of_a_split_is_found_in_spite_of_blanks_and_case(tmp_path):
    rows = "".join(f"{'C' * n},{n},{'ab'[n % 2]}\n" for n in range(1, 9))
    labelled = table(tmp_path, "smiles,y, Batch \n" + rows, targets=["y"])
    folds = ready(labelled, split="group:batch").data.folds
    assert len(set(folds[::2].tolist())) == len(set(folds[1::2].tolist())) == 1


def test_scaffold_folds_keep_a_scaffold_together_and_spread_the_acyclic(tmp_path):
    rings = ["c1ccccc1C", "c1ccccc1CC", "c1ccccc1O", "C1CCCCC1", "C1CCCCC1O"]
    chains = ["C" * n for n in range(1, 11)]
    text = "smiles,y\n" + "".join(f"{s},{i}\n" for i, s in enumerate(rings + chains))
    folds = ready(table(tmp_path, text), split="scaffold", n_folds=3).data.folds
    assert len(set(folds[:3].tolist())) == 1
    assert len(set(folds[3:5].tolist())) == 1
    assert len(set(folds[5:].tolist())) == 3


def test_descriptors_come_along(tmp_path):
    done = ready(table(tmp_path, ALKANES), descriptors=True)
    assert done.data.descriptors is not None
    assert done.data.descriptors.shape == (10, 217)

"""Folds: what stays together, how even they are, what they depend on."""

import csv
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molscore.chem.parse import Molecule, parse_smiles, scaffold, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.splits import count_crossing, make_folds, parse_split, read_folds_file
from molscore.errors import ConfigError, InputError


def together(labels, folds):
    """Whether equal labels share a fold."""
    seen = {}
    return all(
        seen.setdefault(label, fold) == fold for label, fold in zip(labels, folds, strict=True)
    )


def sizes(folds):
    return np.bincount(folds).tolist()


@pytest.mark.parametrize("kind", ["random", "scaffold", "group:site", "time:year"])
def test_parse_split(kind):
    name, column = parse_split(kind)
    assert (name if column is None else f"{name}:{column}") == kind


@pytest.mark.parametrize("kind", ["", "kmeans", "group", "group:", "time: ", "random:x"])
def test_an_unknown_split_is_refused_with_the_known_ones(kind):
    with pytest.raises(ConfigError, match=r"random, scaffold, group:COLUMN, time:COLUMN"):
        make_folds(kind, 2, 0, ["a", "b"])


@given(
    keys=st.lists(st.sampled_from("abcdefghijklmnop"), min_size=12, max_size=60),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=150, deadline=None)
def test_random_folds_keep_structures_together_and_even(keys, n_folds, seed):
    if len(set(keys)) < n_folds:
        with pytest.raises(ConfigError, match=f"{n_folds} folds need at least {n_folds}"):
            make_folds("random", n_folds, seed, keys)
        return
    folds = make_folds("random", n_folds, seed, keys)
    assert folds.dtype == np.int64
    assert sorted(set(folds.tolist())) == list(range(n_folds))
    assert together(keys, folds)
    # Largest first to the smallest fold: never further apart than the largest unit.
    assert max(sizes(folds)) - min(sizes(folds)) <= max(Counter(keys).values())


def test_random_folds_of_different_structures_are_even_to_one():
    assert sizes(make_folds("random", 5, 3, [str(i) for i in range(1128)])) == [226] * 3 + [225] * 2


def test_random_folds_are_fixed_for_all_times():
    keys = [f"KEY{i}" for i in range(12)]
    assert make_folds("random", 3, 0, keys).tolist() == [0, 1, 2, 0, 0, 2, 0, 2, 1, 1, 2, 1]
    assert make_folds("random", 3, 1, keys).tolist() == [0, 2, 1, 1, 0, 1, 1, 2, 0, 2, 0, 2]


def test_folds_do_not_depend_on_the_order_of_rows():
    keys = [f"K{i % 40}" for i in range(100)]
    groups = [f"G{i % 40 // 3}" for i in range(100)]
    order = list(range(100))
    random.Random(5).shuffle(order)
    for kind in ("random", "group:g"):
        folds = make_folds(kind, 4, 7, keys, groups=groups)
        shuffled = make_folds(
            kind, 4, 7, [keys[i] for i in order], groups=[groups[i] for i in order]
        )
        assert [folds[i] for i in order] == shuffled.tolist()


def test_another_seed_gives_other_folds_that_are_as_random():
    keys = [str(i) for i in range(2000)]
    a, b = (make_folds("random", 5, seed, keys) for seed in (0, 1))
    # Two independent splits into 5 agree on a fifth of the rows.
    assert 0.15 < (a == b).mean() < 0.25
    # No trace of the order of rows: neighbours share a fold as often as chance has it.
    assert 0.15 < (a[1:] == a[:-1]).mean() < 0.25


def test_scaffold_folds_spread_molecules_without_rings():
    smiles = ["C" * i for i in range(1, 41)]
    smiles += [f"c1ccccc1{'C' * i}" for i in range(20)]
    smiles += [f"C1CCCCC1{'C' * i}" for i in range(12)] + [f"c1ccncc1{'C' * i}" for i in range(8)]
    molecules = [parse_smiles(text, ChemPolicy()) for text in smiles]
    assert all(isinstance(molecule, Molecule) for molecule in molecules)
    scaffolds = [scaffold(molecule) for molecule in molecules]
    keys = [structure_key(molecule) for molecule in molecules]
    folds = make_folds("scaffold", 4, 0, keys, scaffolds=scaffolds)
    assert sizes(folds) == [20, 20, 20, 20]
    assert together(scaffolds[40:], folds[40:])
    assert len(set(folds[:40].tolist())) >= 3


def test_one_scaffold_for_all_is_refused():
    with pytest.raises(ConfigError, match=r"2 different scaffolds .*these 3 rows hold 1"):
        make_folds("scaffold", 2, 0, ["a", "b", "c"], scaffolds=["s", "s", "s"])


def test_a_structure_in_two_groups_joins_them():
    keys = ["a", "b", "b", "c", "d", "e"]
    groups = ["x", " x", "y", "y ", "z", "w"]
    folds = make_folds("group:g", 3, 0, keys, groups=groups)
    assert len(set(folds[:4].tolist())) == 1
    assert sizes(folds) == [4, 1, 1]


def test_a_blank_group_groups_nothing():
    folds = make_folds("group:g", 4, 0, ["a", "b", "c", "d"], groups=["", " ", "", ""])
    assert sizes(folds) == [1, 1, 1, 1]


@given(
    years=st.lists(st.integers(1990, 2020), min_size=5, max_size=60),
    n_folds=st.integers(2, 4),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_later_folds_are_later(years, n_folds, data):
    keys = data.draw(
        st.lists(st.sampled_from("abcdefghijkl"), min_size=len(years), max_size=len(years))
    )
    first = {}
    for key, year in zip(keys, years, strict=True):
        first[key] = min(year, first.get(key, 9999))
    row_year = [first[key] for key in keys]
    times = [str(year) for year in years]
    if len(set(row_year)) < n_folds:
        with pytest.raises(ConfigError, match="different times"):
            make_folds("time:year", n_folds, 0, keys, times=times)
        return
    folds = make_folds("time:year", n_folds, 0, keys, times=times)
    assert together(keys, folds)
    assert sorted(set(folds.tolist())) == list(range(n_folds))
    for k in range(n_folds - 1):
        earlier = max(y for y, fold in zip(row_year, folds, strict=True) if fold <= k)
        later = min(y for y, fold in zip(row_year, folds, strict=True) if fold > k)
        assert earlier < later


def test_time_folds_are_as_even_as_whole_points_allow():
    keys = [str(i) for i in range(100)]
    assert sizes(make_folds("time:t", 4, 0, keys, times=[str(i) for i in range(100)])) == [25] * 4
    times = ["2000"] * 60 + ["2001"] * 20 + ["2002"] * 20
    assert sizes(make_folds("time:t", 3, 0, keys, times=times)) == [60, 20, 20]


def test_dates_with_and_without_zones():
    times = ["2024-01-02", "2024-01-01T23:00:00+00:00", "2024-01-03T00:00:00Z"]
    folds = make_folds("time:t", 3, 0, ["a", "b", "c"], times=times)
    assert folds.tolist() == [1, 0, 2]


@pytest.mark.parametrize("bad", ["", "soon", "nan", "31.12.2024", "1_000", "inf"])
@pytest.mark.parametrize("good", ["2020", "2020-01-01"])
def test_a_time_that_cannot_be_read_is_refused(bad, good):
    with pytest.raises(InputError, match=rf"cannot read the time {bad!r} \(entry 2 of 3\)"):
        make_folds("time:t", 2, 0, ["a", "b", "c"], times=[good, bad, good])


def test_missing_labels_and_too_few_folds():
    with pytest.raises(ConfigError, match="needs scaffolds, one for each of 2 rows; got none"):
        make_folds("scaffold", 2, 0, ["a", "b"])
    with pytest.raises(ConfigError, match="needs groups, one for each of 2 rows; got 1"):
        make_folds("group:g", 2, 0, ["a", "b"], groups=["x"])
    with pytest.raises(ConfigError, match="at least 2 folds, got 1"):
        make_folds("random", 1, 0, ["a", "b"])


# --- folds files --------------------------------------------------------------------------


def folds_file(tmp_path, text):
    path = tmp_path / "folds.csv"
    path.write_text(text)
    return path


def test_a_folds_file_in_any_order_with_any_numbers(tmp_path):
    path = folds_file(tmp_path, "name,Fold , row\nx,3,2\ny,1,0\nz,3,1\n")
    assert read_folds_file(path, 3).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,fold\n0,0\n1,1\n", r"1 of 3 rows have no fold, the first is row 2"),
        ("row,fold\n0,0\n1,1\n1,0\n2,0\n", r"line 4: row 1 is given a second time"),
        ("row,fold\n0,0\n1,1\n2,0\n3,0\n", r"line 5: row 3 is beyond the table"),
        ("row,fold\n0,0\n1,x\n2,0\n", r"line 3: fold is 'x', expected a whole number"),
        ("row,fold\n0,0\n1,-1\n2,0\n", r"line 3: fold is '-1'"),
        ("row,fold\n0,0\n1.0,1\n2,0\n", r"line 3: row is '1.0'"),
        ("row,fold\n0,0\n1\n2,0\n", r"line 3: ragged row"),
        ("row,fold\n0,1\n1,1\n2,1\n", r"all rows are in one fold"),
        ("id,part\n0,1\n1,1\n2,1\n", r"has columns row,fold; found id, part"),
    ],
)
def test_a_folds_file_that_does_not_fit_is_refused_with_its_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_folds_file(folds_file(tmp_path, text), 3)


def test_count_crossing():
    assert count_crossing(["a", "a", "b", "b", "c"], [0, 1, 2, 2, 0]) == 1
    assert count_crossing([], []) == 0


def test_the_benchmark_folds_cut_through_ten_structures(shared_data):
    with (shared_data / "esol.csv").open(newline="") as file:
        smiles = [row["smiles"] for row in csv.DictReader(file)]
    keys = [structure_key(parse_smiles(text, ChemPolicy())) for text in smiles]
    folds = read_folds_file(shared_data / "esol_folds_seed42.csv", len(keys))
    assert sizes(folds) == [226, 226, 226, 225, 225]
    assert count_crossing(keys, folds) == 10
    assert count_crossing(keys, make_folds("random", 5, 0, keys)) == 0

"""Packing molecules and gathering batches, against the plain way to do it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molscore.chem.graph import ATOM_FEATURES, BOND_FEATURES, featurize
from molscore.chem.packed import PackedGraphs
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy

TEXTS = ["C", "CCO", "[Na+].[Cl-]", "c1ccccc1", "C1CC1C(=O)O", "O", "N[C@@H](C)C(=O)O"]
GRAPHS = [featurize(parse_smiles(text, ChemPolicy())) for text in TEXTS]
PACKED = PackedGraphs.pack(GRAPHS)


def assert_same(left, right):
    for name in ("atom_codes", "bond_atoms", "bond_codes", "atom_ptr", "bond_ptr"):
        a, b = getattr(left, name), getattr(right, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_pack_keeps_every_molecule():
    assert len(PACKED) == len(TEXTS)
    for i, graph in enumerate(GRAPHS):
        atoms = slice(*PACKED.atom_ptr[i : i + 2])
        bonds = slice(*PACKED.bond_ptr[i : i + 2])
        np.testing.assert_array_equal(PACKED.atom_codes[atoms], graph.atom_codes)
        np.testing.assert_array_equal(PACKED.bond_atoms[bonds], graph.bond_atoms)
        np.testing.assert_array_equal(PACKED.bond_codes[bonds], graph.bond_codes)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, len(TEXTS) - 1), max_size=12))
def test_batch_equals_a_loop_over_molecules(index):
    batch = PACKED.batch(np.array(index, dtype=np.int64))
    atoms, bonds, edges, owners, first = [], [], [], [], 0
    for k, i in enumerate(index):
        graph = GRAPHS[i]
        atoms += graph.atom_codes.tolist()
        owners += [k] * len(graph.atom_codes)
        for (a, b), codes in zip(graph.bond_atoms.tolist(), graph.bond_codes.tolist(), strict=True):
            edges += [(first + a, first + b), (first + b, first + a)]
            bonds += [codes, codes]
        first += len(graph.atom_codes)
    assert batch.atom_codes.tolist() == atoms
    assert batch.bond_codes.tolist() == bonds
    assert batch.edge_index.T.tolist() == [list(edge) for edge in edges]
    assert batch.graph_id.tolist() == owners
    assert batch.n_atoms.tolist() == [len(GRAPHS[i].atom_codes) for i in index]
    assert {a.dtype for a in batch} == {np.dtype(np.int64)}
    assert batch.atom_codes.shape[1:] == (len(ATOM_FEATURES),)
    assert batch.bond_codes.shape[1:] == (len(BOND_FEATURES),)


@pytest.mark.parametrize("parts", [[[3]], [[0, 2], [6, 0, 0], [5]], [[1], [2], [0], [2, 4]]])
def test_batches_are_those_gathered_one_by_one(parts):
    parts = [np.array(part) for part in parts]
    for found, part in zip(PACKED.batches(parts), parts, strict=True):
        for a, b in zip(found, PACKED.batch(part), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


def test_no_molecule_and_no_bond_keep_their_widths():
    assert len(PackedGraphs.pack([])) == 0
    assert PackedGraphs.pack([]).atom_codes.shape == (0, len(ATOM_FEATURES))
    batch = PACKED.batch(np.array([0, 2]))
    assert batch.edge_index.shape == (2, 0)
    assert batch.bond_codes.shape == (0, len(BOND_FEATURES))
    assert batch.graph_id.tolist() == [0, 1, 1]


@given(st.lists(st.integers(0, len(TEXTS)), max_size=4).map(sorted))
@settings(deadline=None, derandomize=True)
def test_concatenate_undoes_cutting(cuts):
    bounds = [0, *cuts, len(TEXTS)]
    parts = [PackedGraphs.pack(GRAPHS[a:b]) for a, b in pairwise(bounds)]
    assert_same(PackedGraphs.concatenate(parts), PACKED)
    assert_same(PackedGraphs.concatenate([]), PackedGraphs.pack([]))


@pytest.mark.parametrize("index", [[-1], [len(TEXTS)], [0, 99]])
def test_an_index_outside_is_refused(index):
    with pytest.raises(IndexError, match="outside 0 to 6"):
        PACKED.batch(np.array(index))


@pytest.mark.parametrize("index", [[], [2], [6, 0, 0, 3, 1]])
def test_take_gathers_in_the_order_given(index):
    taken = PACKED.take(np.array(index, dtype=np.int64))
    assert_same(taken, PackedGraphs.pack([GRAPHS[i] for i in index]))


@pytest.mark.parametrize("index", [-1, len(TEXTS)])
def test_take_refuses_what_is_not_there(index):
    with pytest.raises(IndexError, match="outside 0 to 6"):
        PACKED.take(np.array([index]))

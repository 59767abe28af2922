"""Packed fingerprints and their nearest, against RDKit."""

import numpy as np
import pytest
from rdkit import DataStructs
from rdkit.Chem import rdFingerprintGenerator

from molscore.bundle.similarity_graph import SimilaritySearch
from molscore.chem.fingerprints import N_BITS, N_BYTES, fingerprint_many
from tests.molecules import VARIED, molecule

MOLECULES = [molecule(s) for s in VARIED]


def rdkit_fingerprints():
    make = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=N_BITS, countSimulation=True)
    return [make.GetFingerprint(m.mol) for m in MOLECULES]


def test_bits_are_those_of_rdkit() -> None:
    packed = fingerprint_many(MOLECULES)
    assert packed.shape == (len(MOLECULES), N_BYTES)
    bits = np.unpackbits(packed, axis=1, bitorder="little")
    wanted = [list(map(int, one.ToBitString())) for one in rdkit_fingerprints()]
    np.testing.assert_array_equal(bits, wanted)


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_the_nearest_are_those_of_rdkit(k: int) -> None:
    packed = fingerprint_many(MOLECULES)
    similarity, index = SimilaritySearch(packed, k).nearest(packed)
    k = min(k, len(MOLECULES))
    assert similarity.shape == index.shape == (len(MOLECULES), k)
    theirs = rdkit_fingerprints()
    for i, one in enumerate(theirs):
        every = np.array(DataStructs.BulkTanimotoSimilarity(one, theirs))
        order = np.argsort(-every, kind="stable")[:k]
        np.testing.assert_allclose(similarity[i], every[order], rtol=1e-6)
        np.testing.assert_allclose(every[index[i]], every[order])


def test_a_similarity_does_not_depend_on_the_batch() -> None:
    packed = fingerprint_many(MOLECULES * 3)
    search = SimilaritySearch(packed, 5)
    whole = search.nearest(packed)
    for part in (slice(0, 1), slice(7, 50)):
        alone = search.nearest(packed[part])
        np.testing.assert_array_equal(alone[0], whole[0][part])
        np.testing.assert_array_equal(alone[1], whole[1][part])


def test_chains_of_other_lengths_differ() -> None:
    packed = fingerprint_many([molecule("C" * n) for n in (8, 9, 20)])
    similarity, _ = SimilaritySearch(packed[:1], 1).nearest(packed)
    assert similarity[0, 0] == 1.0
    assert similarity[2, 0] < 0.9


def test_no_molecule_and_empty_fingerprints() -> None:
    assert fingerprint_many([]).shape == (0, N_BYTES)
    nothing = np.zeros((2, N_BYTES), dtype=np.uint8)
    similarity, index = SimilaritySearch(nothing, 2).nearest(nothing)
    assert similarity.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert index.tolist() == [[0, 1], [0, 1]]

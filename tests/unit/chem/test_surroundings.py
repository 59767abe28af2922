"""Classes of directed bonds with the same surroundings."""

import numpy as np
import pytest

from molscore.bundle.tracing import example_arrays
from molscore.chem import surroundings
from molscore.chem.graph import featurize_many
from molscore.chem.packed import GraphArrays, join_batches
from molscore.chem.parse import Molecule, parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.chem.surroundings import Sums, share

ROUNDS = 4
SMILES = (
    *("CCCCCCCC", "c1ccccc1-c1ccccc1", "O", "[Na+].[Cl-]", "C1CC1CC1CC1", "CC(C)(C)C(C)(C)C"),
    *("C/C=C/C", "C/C=C\\C", "CC(=O)Nc1ccc(O)cc1", "N[C@@H](C)C(=O)O", "N[C@H](C)C(=O)O", "CCO"),
)


def batch_of(*smiles: str) -> GraphArrays:
    parsed = [parse_smiles(s, ChemPolicy(), i) for i, s in enumerate(smiles)]
    graphs = featurize_many([m for m in parsed if isinstance(m, Molecule)])
    return graphs.batch(np.arange(len(graphs)))


def by_hand(batch: GraphArrays) -> tuple[list[list[int]], list[int]]:
    """Refine with tuples and dictionaries; return the class of each bond by round, and of atoms."""
    source, target = batch.edge_index.tolist()
    atoms, bonds = batch.atom_codes.tolist(), batch.bond_codes.tolist()
    keys = [(tuple(atoms[source[e]]), tuple(bonds[e])) for e in range(len(source))]
    rounds = []
    ends: dict[int, list[int]] = {}
    for e, v in enumerate(target):
        ends.setdefault(v, []).append(e)
    for _ in range(ROUNDS + 1):
        known: dict[object, int] = {}
        numbers = [known.setdefault(key, len(known)) for key in keys]
        rounds.append(numbers)
        keys = [
            (numbers[e], tuple(sorted(numbers[k] for k in ends.get(source[e], []) if k != e ^ 1)))
            for e in range(len(source))
        ]
    known = {}
    of_atoms = []
    for v, codes in enumerate(atoms):
        key = (tuple(codes), tuple(sorted(rounds[-1][k] for k in ends.get(v, []))))
        of_atoms.append(known.setdefault(key, len(known)))
    return rounds, of_atoms


def dense(sums: Sums, n: int, values: np.ndarray) -> np.ndarray:
    out = np.zeros((n, values.shape[1]))
    np.add.at(out, sums.owner, values[sums.rows])
    return out


@pytest.mark.parametrize(
    "batch",
    [
        batch_of(*SMILES),
        batch_of("O"),
        batch_of("O", "N", "O"),
        batch_of("CC"),
        example_arrays((1, 30, 2, 1, 60, 7, 7), seed=3)[0],
        join_batches([batch_of(*SMILES), batch_of("O"), batch_of(*SMILES)]),
    ],
    ids=["molecules", "an atom", "atoms", "a bond", "made up", "joined"],
)
def test_there_are_as_many_classes_as_surroundings(batch: GraphArrays) -> None:
    shared = share(batch, ROUNDS)
    assert shared is not None
    rounds, of_atoms = by_hand(batch)
    found = [len(shared.atom_codes), *(len(one.own) for one in shared.rounds)]
    assert found == [len(set(numbers)) for numbers in rounds]
    # The same partition of the atoms, whatever the numbers.
    pairs = set(zip(of_atoms, shared.atom.tolist(), strict=True))
    assert len(pairs) == len(set(of_atoms)) == len(shared.kind)
    assert np.array_equal(shared.kind_codes[shared.kind[shared.atom]], batch.atom_codes)


def test_a_model_on_classes_is_the_model_on_bonds() -> None:
    batch = batch_of(*SMILES)
    shared = share(batch, ROUNDS)
    assert shared is not None
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 300, 5))
    w = rng.standard_normal((5, 5)) / 3

    def start(atoms: np.ndarray, bonds: np.ndarray) -> np.ndarray:
        x = a[(atoms + 40 * np.arange(atoms.shape[1])) % 300].sum(1)
        return np.tanh(x + b[bonds + 9 * np.arange(bonds.shape[1])].sum(1))

    source, target = batch.edge_index
    h = first = start(batch.atom_codes[source], batch.bond_codes)
    g = again = start(shared.atom_codes, shared.bond_codes)
    for one in shared.rounds:
        into = np.zeros((len(batch.atom_codes), 5))
        np.add.at(into, target, h)
        reverse = h.reshape(-1, 2, 5)[:, ::-1].reshape(-1, 5)
        h = 0.5 * h + 0.5 * np.tanh(first + (into[source] - reverse) @ w)
        g = 0.5 * g[one.own] + 0.5 * np.tanh(
            again[one.first] + dense(one.messages, len(one.own), g) @ w
        )
    into = np.zeros((len(batch.atom_codes), 5))
    np.add.at(into, target, h)
    found = dense(shared.into, len(shared.kind), g)[shared.atom]
    np.testing.assert_allclose(found, into, atol=1e-12)


def test_equal_molecules_cost_as_much_as_one() -> None:
    one, many = (share(batch_of(*["CC(=O)Nc1ccc(O)cc1"] * n), ROUNDS) for n in (1, 50))
    assert one is not None
    assert many is not None
    assert [len(r.own) for r in one.rounds] == [len(r.own) for r in many.rounds]
    assert len(many.atom) == 50 * len(one.atom)


def test_hashes_that_do_not_agree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    h, check = np.array([1, 1, 2], dtype=np.uint64), np.array([5, 6, 7], dtype=np.uint64)
    assert surroundings._classes(h, check) is None
    mix, calls = surroundings._mix, iter(range(10**9))

    def sloppy(x: np.ndarray) -> np.ndarray:
        """Keep four bits of one of the two hashes now and then."""
        return mix(x) >> np.uint64(60 * (next(calls) % 3 == 0))

    monkeypatch.setattr(surroundings, "_mix", sloppy)
    assert share(batch_of(*SMILES), ROUNDS) is None

"""Descriptors of the bare graph: connectivity, shape, distances and symmetry.

RDKit computes each by itself, in Python or by listing the same paths over and over. Here they
share the paths and matrices. Terms are added in RDKit's order, so the values are the same to
the last bit; structures with special bonds are left to RDKit (`Facts.is_plain`).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rdkit.Chem import rdMolDescriptors
from rdkit.ML.InfoTheory import rdInfoTheory

from molscore.chem.facts import MAX_WALKS, Facts, Floats, Integers, ordered_sum

_SYMMETRY_ATOMS: Final = 100
"""Distances `BertzCT` compares to tell atoms apart: RDKit's cutoff."""


def connectivity(facts: Facts) -> dict[str, float]:
    """Return Chi0 and Chi1: sums of 1/sqrt(degree) over atoms, of 1/sqrt(degrees) over bonds."""
    degrees = facts.degrees.astype(np.float64)
    # In the order of the molecule, which the sorted `bond_atoms` have lost.
    ends = np.array(facts.bond_ends, dtype=np.intp).reshape(-1, 2)
    of_bonds = degrees[ends[:, 0]] * degrees[ends[:, 1]]
    return {
        "Chi0": float(ordered_sum(np.sqrt(1.0 / degrees[degrees > 0]))),
        "Chi1": float(ordered_sum(np.sqrt(1.0 / of_bonds))),
    }


def path_connectivity(block: Sequence[Facts], names: Sequence[str]) -> list[dict[str, float]]:
    """Return Chi2n to Chi4n and Chi2v to Chi4v, Kappa2, Kappa3 and Phi of several molecules.

        Chi_k = sum over paths of k bonds of the product over their atoms of delta^(-1/2)

    The molecules are searched as one graph.

    Args:
        block: facts of plain molecules with `few_paths`.
        names: those that are asked for; what needs longer paths than all of them is left out.

    Source: Hall and Kier, doi:10.1002/9780470125793.ch9; RDKit `CalcChiNn`, `CalcChiNv`,
        `CalcKappa2`.
    """
    longest = max(2 if name == "Phi" else int(name.rstrip("nv")[-1]) for name in names)
    values: list[dict[str, float]] = []
    start = walks = 0
    for end, facts in enumerate(block):
        walks += facts.walk_bound
        if walks > MAX_WALKS:
            values += _path_connectivity(block[start:end], longest)
            start, walks = end, facts.walk_bound
    return values + _path_connectivity(block[start:], longest)


def _path_connectivity(block: Sequence[Facts], longest: int) -> list[dict[str, float]]:
    sizes = np.array([len(facts.numbers) for facts in block])
    molecule = np.repeat(np.arange(len(block)), sizes)
    firsts = np.repeat(np.cumsum(sizes) - sizes, [len(facts.bond_atoms) for facts in block])
    bond_atoms = np.concatenate([facts.bond_atoms for facts in block]) + firsts[:, None]
    weights = np.concatenate([_path_weights(facts) for facts in block])
    values: list[dict[str, float]] = [{} for _ in block]
    for paths in _paths(bond_atoms, len(molecule), longest):
        n_bonds = paths.shape[1] - 1
        products = weights[paths[:, 0]]
        for column in paths.T[1:-1]:
            products = products * weights[column]
        # The atom at which a ring starts and ends counts once.
        is_ring = paths[:, :1] == paths[:, -1:]
        products = products * np.where(is_ring, 1.0, weights[paths[:, -1]])
        # Unlike a sum of numpy, this adds from the first to the last.
        owner = molecule[paths[:, 0]]
        chi_n, chi_v, n_paths = (
            np.bincount(owner, each, minlength=len(block)).tolist()
            for each in (products[:, 0], products[:, 1], None)
        )
        for i, facts in enumerate(block):
            values[i][f"Chi{n_bonds}n"], values[i][f"Chi{n_bonds}v"] = chi_n[i], chi_v[i]
            if n_bonds <= 3:
                values[i][f"Kappa{n_bonds}"] = _kappa(facts, n_paths[i], n_bonds)
    for facts, found in zip(block, values, strict=True):
        kappa1 = rdMolDescriptors.CalcKappa1(facts.mol)
        found["Phi"] = kappa1 * found["Kappa2"] / len(facts.numbers)
    return values


def _path_weights(facts: Facts) -> Floats:
    """Return delta^(-1/2) of each atom without and with its core electrons, [n, 2]; 0 for 0."""
    valences = facts.valence_electrons.astype(np.float64)
    core = np.where(facts.numbers > 10, facts.numbers - facts.outer_electrons - 1, 1)
    deltas = np.stack([valences, valences / core], axis=1)
    return np.where(deltas != 0, 1.0 / np.sqrt(deltas), 0.0)


def _kappa(facts: Facts, n_paths: int, n_bonds: int) -> float:
    """Return Kier's shape index of order 2 or 3."""
    size, alpha = len(facts.numbers), facts.hall_kier_alpha
    if not ((n_paths + alpha) ** 2):
        return 0.0
    if n_bonds == 2:
        shape = (size + alpha - 1) * (size + alpha - 2) * (size + alpha - 2)
    else:
        shape = (size + alpha - (1 if size % 2 else 2)) * (size + alpha - 3) * (size + alpha - 3)
    return float(shape / (n_paths + alpha) ** 2)


def _paths(bond_atoms: Integers, n_atoms: int, longest: int) -> list[Integers]:
    """Return the paths of 2 to `longest` bonds, each [n_paths, n_bonds + 1], in RDKit's order.

    A path uses no bond twice, and one that comes back to one of its atoms ends there. Of those
    with the same bonds the first counts.

    Args:
        bond_atoms: int64 [n_bonds, 2].
        n_atoms: number of atoms.
        longest: bonds of the longest path, at least 2.
    """
    both = np.concatenate([bond_atoms, bond_atoms[:, ::-1]])
    walks = both[np.lexsort((both[:, 1], both[:, 0]))]
    neighbours, degrees = walks[:, 1], np.bincount(walks[:, 0], minlength=n_atoms)
    firsts = np.cumsum(degrees) - degrees
    found = []
    for _ in range(2, longest + 1):
        last = walks[:, -1]
        reach = degrees[last]
        # Where the neighbours of each walk's end start, less where its continuations start.
        shift = firsts[last] - (np.cumsum(reach) - reach)
        new = neighbours[np.repeat(shift, reach) + np.arange(reach.sum())]
        grown = np.concatenate([np.repeat(walks, reach, axis=0), new[:, None]], axis=1)
        seen = (grown[:, :-1] == new[:, None]).any(axis=1)
        first_found = ~seen & (grown[:, 0] < new)
        closed = seen & (grown[:, -3] != new)
        if closed.any():
            first_found[closed] = [_closes_first(row) for row in grown[closed].tolist()]
        found.append(grown[first_found])
        walks = grown[~seen]
    return found


def _closes_first(path: list[int]) -> bool:
    """Whether a path that ends in one of its own atoms comes before others with its bonds."""
    joint = path.index(path[-1])
    # A ring is found from each of its atoms, and every ring in both directions.
    return path[joint + 1] < path[-2] and (joint > 0 or path[0] == min(path))


def balaban(facts: Facts) -> dict[str, float]:
    """Return Balaban's J: q / (mu + 1) times the sum over bonds of (s_i s_j)^(-1/2).

    q is the number of bonds, mu that of independent rings, s_i the sum of the distances of i.

    Source: doi:10.1016/0009-2614(82)80009-2; RDKit `BalabanJ`.
    """
    sums = ordered_sum(facts.bond_distances)
    begin, end = facts.bond_atoms.T
    n_bonds, n_rings = len(begin), len(begin) - len(sums) + 1
    if n_rings + 1 == 0:
        return {"BalabanJ": 0.0}
    total = ordered_sum(1.0 / np.sqrt(sums[begin] * sums[end]))
    return {"BalabanJ": float(n_bonds / (n_rings + 1) * total)}


def complexity(facts: Facts) -> dict[str, float]:
    """Return Bertz's complexity: the information in kinds of connection and kinds of atom.

    Args:
        facts: of a plain molecule.

    Source: doi:10.1021/ja00402a071; RDKit `BertzCT`.
    """
    n_atoms = len(facts.degrees)
    if n_atoms < 2:
        return {"BertzCT": 0.0}
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(n_atoms)]
    # Bonds are sorted, so these come in the order of the neighbours.
    for (i, j), order in zip(facts.bond_atoms.tolist(), facts.bond_orders.tolist(), strict=True):
        neighbours[i].append((j, order))
        neighbours[j].append((i, order))
    kind = _symmetry(facts.bond_distances)
    connections: dict[Any, float] = {}
    # The order of first occurrence is that of RDKit: it decides the order of the sums.
    for atom, around in enumerate(sorted(each) for each in neighbours):
        here = kind[atom]
        for position, (i, order) in enumerate(around):
            if order > 1 and i > atom:
                key: Any = (min(here, kind[i]), max(here, kind[i]))
                connections[key] = connections.get(key, 0) + order * (order - 1) / 2
            for j, other in around[position + 1 :]:
                key = (min(kind[i], kind[j]), here, max(kind[i], kind[j]))
                connections[key] = connections.get(key, 0) + order * other
    counts = list(connections.values()) or [1]
    elements: dict[int, int] = {}
    for number in facts.numbers.tolist():
        elements[number] = elements.get(number, 0) + 1
    total = sum(counts)
    information = total * (
        rdInfoTheory.InfoEntropy(np.array(counts, float)) + math.log(total) / math.log(2)
    )
    of_atoms = n_atoms * rdInfoTheory.InfoEntropy(np.array(list(elements.values()), float))
    return {"BertzCT": float(of_atoms + information)}


def _symmetry(distances: Floats) -> list[int]:
    """Number the atoms [n] by kind: alike where the distances to all others are."""
    # Sums of 1/1, 2/3, 1/2 and 1/3 are never near the middle between two of these steps.
    steps = np.rint(np.sort(distances, axis=1)[:, :_SYMMETRY_ATOMS] * 1e4).astype(np.int64)
    kinds: dict[bytes, int] = {}
    return [kinds.setdefault(row.tobytes(), len(kinds)) for row in steps]


def content(facts: Facts) -> dict[str, float]:
    """Return AvgIpc and Ipc."""
    average, total = information_content(facts.adjacency)
    return {"AvgIpc": average, "Ipc": total}


def information_content(adjacency: Floats) -> tuple[float, float]:
    r"""Return the information content of a graph's characteristic polynomial.

        p_k = |c_k| / sum |c|,    AvgIpc = -sum p_k log2 p_k,    Ipc = sum |c| * AvgIpc

    with c_k the coefficients of det(z - A). They are taken from the values of the polynomial,
    the product of (z - eigenvalue), at the (n+1)-th roots of unity by a Fourier transform:
    since no value exceeds sum |c|, the error is some n * 1e-16 of that sum at any size.

    Args:
        adjacency: float64 [n, n], symmetric, 0 or 1.

    Returns:
        AvgIpc in bits, and Ipc, which is infinite where it leaves the range of float64.

    Source: Bonchev and Trinajstic, doi:10.1063/1.434593; RDKit `GraphDescriptors.Ipc`, which
        this equals wherever the latter is accurate.
    """
    eigenvalues = np.linalg.eigvalsh(adjacency)
    factors = _roots_of_unity(len(eigenvalues) + 1)[:, None] - eigenvalues
    # Moduli and phases apart: the product itself may leave the range of float64.
    log_size = np.log(np.maximum(np.abs(factors), 1e-300)).sum(axis=1)
    largest = log_size.max()
    values = np.exp(log_size - largest + 1j * np.angle(factors).sum(axis=1))
    coefficients = np.abs(np.fft.fft(values)) / len(values)
    scale = coefficients.sum()
    shares = coefficients[coefficients > 0] / scale
    average = float(-(shares * np.log2(shares)).sum())
    with np.errstate(over="ignore"):
        return average, float(np.exp(largest + np.log(scale)) * average)


@lru_cache(maxsize=256)
def _roots_of_unity(n: int) -> NDArray[np.complex128]:
    roots: NDArray[np.complex128] = np.exp(2j * np.pi * np.arange(n) / n)
    return roots

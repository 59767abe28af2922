"""Descriptors of many molecules, by several processes."""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from molscore.chem.descriptors import DESCRIPTOR_NAMES, compute_descriptors
from molscore.chem.molecule import Molecule
from molscore.chem.parse import parse_smiles
from molscore.chem.policy import ChemPolicy
from molscore.cpus import worker_count
from molscore.errors import InputError, MolscoreError
from molscore.processes.pool import Work, WorkerPool
from molscore.processes.worker import Message

SERIAL_MOLECULES: Final = 512
"""So many are described, in a second, before other processes would have started."""

_BLOCK: Final = 128
_MAX_AHEAD: Final = 8
"""Blocks kept before the first of them is answered, however few molecules they hold."""

Block = Sequence[Molecule]


def describe_many(molecules: Block, policy: ChemPolicy, workers: int = 0) -> NDArray[np.float64]:
    """Compute all RDKit descriptors of molecules; see `compute_descriptors`.

    Args:
        molecules: parsed under `policy`.
        policy: workers parse them again.
        workers: processes; 0 takes the available CPUs.

    Returns:
        float64 [n_molecules, 217], the same for any number of workers.

    Raises:
        MolscoreError: when a worker dies.
    """
    blocks = [molecules[i : i + _BLOCK] for i in range(0, len(molecules), _BLOCK)]
    nothing = np.empty((0, len(DESCRIPTOR_NAMES)))
    n_workers = max(1, min(worker_count(workers), len(blocks)))
    return np.concatenate([nothing, *describe_stream(blocks, policy, n_workers)])


def describe_stream(
    blocks: Iterable[Block], policy: ChemPolicy, workers: int = 0
) -> Generator[NDArray[np.float64], None, None]:
    """Yield the descriptors of each block, in order; the arguments are those of `describe_many`.

    The first block is described before more is read, so that slow input is answered at once.
    """
    n_workers = worker_count(workers)
    blocks = iter(blocks)
    yield from map(_compute, islice(blocks, 1))
    if n_workers > 1:
        ahead: list[Block] = []
        n = 0
        for block in blocks:
            ahead.append(block)
            n += len(block)
            if n > SERIAL_MOLECULES or len(ahead) >= _MAX_AHEAD:
                work = Work(serve, policy.to_dict(), _to_message, _from_message, _describe)
                with WorkerPool(work, n_workers) as pool:
                    yield from pool.run(chain(ahead, blocks))
                return
        blocks = iter(ahead)
    yield from map(_compute, blocks)


def serve(setup: Message) -> Callable[[Message], Message]:
    """Return what describes a block under a policy: the work of a process."""
    policy = ChemPolicy.from_dict(setup)

    def describe(message: Message) -> Message:
        molecules = []
        for row, smiles in zip(message["rows"], message["smiles"], strict=True):
            molecule = parse_smiles(smiles, policy, row)
            if not isinstance(molecule, Molecule):  # it was parsed before: say no wrong row
                raise MolscoreError(f"{smiles!r} was a molecule and is none: {molecule.reason}")
            molecules.append(molecule)
        return {"values": _compute(molecules).tolist()}

    return describe


def _compute(block: Block) -> NDArray[np.float64]:
    """Compute the descriptors of a block, and name the molecule of which RDKit can compute none."""
    try:
        return compute_descriptors(block)
    except MolscoreError:
        raise
    except Exception as error:  # noqa: BLE001 (RDKit's share no base)
        for molecule in block:
            try:
                compute_descriptors([molecule])
            except Exception as problem:  # noqa: BLE001
                smiles = molecule.smiles.strip()[:200]
                raise InputError(
                    f"row {molecule.row + 1}: the descriptors of {smiles!r} cannot be "
                    f"computed ({type(problem).__name__}: {problem}); leave the row out"
                ) from None
        raise MolscoreError(f"descriptors failed: {type(error).__name__}: {error}") from None


def _to_message(block: Block) -> Message:
    return {
        "smiles": [molecule.smiles for molecule in block],
        "rows": [molecule.row for molecule in block],
    }


def _from_message(answer: Message) -> NDArray[np.float64]:
    return np.array(answer["values"], dtype=np.float64).reshape(-1, len(DESCRIPTOR_NAMES))


def _describe(block: Block) -> str:
    if not block:
        return "describing no molecule"
    return f"describing rows {block[0].row + 1} to {block[-1].row + 1}"

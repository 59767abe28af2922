"""What the families whose state lives on atoms share: how it begins, and how it ends."""

import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.encoder import atom_encoder, bond_encoder
from molscore.nn.families.base import Block, Family
from molscore.nn.scatter import segment_mean


class AtomContext(NamedTuple):
    """What an atom block needs beside the state."""

    edge_index: Tensor
    """int64 [2, m]: source and target atom of every message"""
    edge_attr: Tensor
    """[m, ...]: what goes with each message; from `Family.begin` the embedded bonds, from
    `Block.prepare` what one block makes of them"""


class AtomFamily(Family):
    """A network on atoms that takes the bonds along its messages.

        h0[v] = act(A codes[v])
        e[uv] = B bond codes[uv]

    Args:
        config: the model's configuration.
        bond_width: width of the embedded bonds; that of the state by default.
    """

    def __init__(self, config: ModelConfig, bond_width: int | None = None) -> None:
        super().__init__(config)
        self.atom_in = atom_encoder(self.width)
        self.bond_in = bond_encoder(bond_width or self.width)

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the bonds embedded."""
        h0 = functional.leaky_relu(self.atom_in(g.atom_codes), SLOPE)
        return h0, AtomContext(g.edge_index, self.bond_in(g.bond_codes))

    def finish(self, h: Tensor, ctx: AtomContext, g: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return the atoms [n_atoms, width] and their molecules."""
        return h, g.graph_id


class BondBlock(Block):
    """A block that makes something of the bonds of its own: E e, by the layer `edge`.

    It does not change over the applications, so it is computed once per pass.
    """

    edge: nn.Module

    def prepare(self, ctx: AtomContext) -> AtomContext:
        """Return the context with the bonds as `edge` makes them."""
        return ctx._replace(edge_attr=self.edge(ctx.edge_attr))


def loop_index(g: GraphBatch) -> Tensor:
    """Return the bonds with a message from every atom to itself behind them.

    Returns:
        int64 [2, 2 * n_bonds + n_atoms]
    """
    # Counted rather than `arange`: what an exported graph takes from this is bounded by its
    # input, where a range is as long as a number says.
    loop = torch.ones_like(g.graph_id).cumsum(0) - 1
    return torch.cat([g.edge_index, loop.expand(2, -1)], dim=1)


def with_loops(ctx: AtomContext, g: GraphBatch) -> AtomContext:
    """Add a message from every atom to itself, with the mean of its bonds (zero without any).

    What PyG's `add_self_loops=True, fill_value="mean"` does, but done once per pass and without
    selecting rows by a mask, which an exported graph could not hold.
    """
    mean = segment_mean(ctx.edge_attr, g.edge_index[1], g.graph_id.shape[0])
    return AtomContext(loop_index(g), torch.cat([ctx.edge_attr, mean], dim=0))


def n_heads(width: int) -> int:
    """Return the attention heads of a state: the largest of 4, 2 and 1 that divides its width."""
    return next(heads for heads in (4, 2, 1) if width % heads == 0)


@contextlib.contextmanager
def building_pyg() -> Iterator[None]:
    """Import and build layers of PyTorch Geometric without traces.

    On being imported it warns of its own use of TorchScript. For every kind of layer it writes a
    Python file to the folder for temporary files, imports it, and would leave it there.
    """
    previous = tempfile.tempdir
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory(prefix="molscore-", ignore_cleanup_errors=True) as folder,
    ):
        warnings.simplefilter("ignore")
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = previous

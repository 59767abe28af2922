"""Directed-bond message passing (DMPNN)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.encoder import N_ATOM_CODES, N_BOND_CODES, atom_encoder, bond_encoder
from molscore.nn.families.base import Block, Family
from molscore.nn.messages import BondBags, bag_message, message
from molscore.nn.scatter import gather, segment_sum
from molscore.score.tracing import exporting


class BondContext(NamedTuple):
    """What a directed-bond block needs beside the state."""

    h0: Tensor
    """[2 * n_bonds, width]: the first state, re-injected at every step"""
    source: Tensor
    """int64 [2 * n_bonds]"""
    target: Tensor
    """int64 [2 * n_bonds]"""
    n_atoms: int
    bags: BondBags | None
    """what `bag_message` adds up; None off the CPU and in a graph to export"""


class DirectedBondBlock(Block):
    """One round of messages along directed bonds.

    For the bond e = (v -> w), with its reverse e' = (w -> v):

        m[e] = sum of h[k] over bonds k that end in v, without e'
        F(h)[e] = act(h0[e] + W m[e])

    Source: Yang et al. 2019, doi 10.1021/acs.jcim.9b00237, equations 3 to 5, with the initial
    state added before the activation.

    Shape:
        h: [2 * n_bonds, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def prepare(self, ctx: BondContext) -> BondContext:
        """Return the context with h0 + bias in the place of h0."""
        return ctx._replace(h0=ctx.h0 + self.linear.bias)

    def forward(self, h: Tensor, ctx: BondContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        if ctx.bags is None:
            return self.scaled(h, ctx, 1.0, 1.0)
        # In place: a new tensor costs as much as a product here.
        z = functional.linear(bag_message(h, ctx.bags), self.linear.weight).add_(ctx.h0)
        return functional.leaky_relu(z, SLOPE, inplace=True)

    def scaled(self, g: Tensor, ctx: BondContext, unit: float, scale: float) -> Tensor:
        """Return scale * F(unit * g): messages are linear, and act(scale z) = scale act(z)."""
        m = message(g, ctx.source, ctx.target, ctx.n_atoms)
        z = torch.addmm(ctx.h0, m, self.linear.weight.t(), beta=scale, alpha=scale * unit)
        return functional.leaky_relu(z, SLOPE)


class DirectedMessagePassing(Family):
    """DMPNN: the state lives on directed bonds and ends on atoms.

        h0[v -> w] = act(A x[v] + B b[vw])
        rows[v]    = act(C x[v] + W sum of h[e] over bonds e that end in v)

    x and b are the codes of atoms and bonds; A, B and C embed them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.atom_in = atom_encoder(self.width, beside=N_BOND_CODES)
        self.bond_in = bond_encoder(self.width, beside=N_ATOM_CODES)
        self.atom_out = atom_encoder(self.width, beside=self.width)
        self.out = nn.Linear(self.width, self.width)

    def begin(self, g: GraphBatch) -> tuple[Tensor, BondContext]:
        """Return h0 [2 * n_bonds, width] and the bond context."""
        source, target = g.edge_index[0], g.edge_index[1]
        n_atoms = g.atom_codes.shape[0]
        x = gather(self.atom_in(g.atom_codes), source)
        h0 = functional.leaky_relu(self.bond_in(g.bond_codes, x), SLOPE)
        # On other devices the counts would have to travel to the CPU and back.
        on_cpu = source.device.type == "cpu" and not exporting()
        bags = BondBags.of(source, target, n_atoms) if on_cpu else None
        return h0, BondContext(h0, source, target, n_atoms, bags)

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return DirectedBondBlock(self.width)

    def finish(self, h: Tensor, ctx: BondContext, g: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return the atoms [n_atoms, width] and their molecules."""
        into = segment_sum(h, ctx.target, ctx.n_atoms)
        rows = functional.leaky_relu(self.atom_out(g.atom_codes, self.out(into)), SLOPE)
        return rows, g.graph_id

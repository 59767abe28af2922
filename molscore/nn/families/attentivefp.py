"""Attentive fingerprints: attention over neighbours, a GRU that updates the atom."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.encoder import atom_encoder, bond_encoder
from molscore.nn.families.base import Block, Family
from molscore.nn.scatter import gather, segment_softmax, segment_sum


class AtomContext(NamedTuple):
    """What an atom block needs beside the state."""

    source: Tensor
    """int64 [2 * n_bonds]"""
    target: Tensor
    """int64 [2 * n_bonds]"""
    n_atoms: int


class NeighbourAttention(Block):
    """Attention over the neighbours of an atom, then a GRU cell.

        a[e]  = softmax over bonds e = (u -> v) into v of act(s . P h[u] + t . P h[v])
        c[v]  = elu(sum of a[e] P h[u] + bias)
        F(h)  = relu(GRU(input c, hidden h))

    Source: Xiong et al. 2020, doi 10.1021/acs.jmedchem.9b00959, equations 3 to 6; the stacked
    form equals `torch_geometric.nn.AttentiveFP` without dropout.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 2, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.gru = nn.GRUCell(width, width)

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h)."""
        p = self.project(h)
        s = self.score(p)
        score = gather(s[:, 0], ctx.source) + gather(s[:, 1], ctx.target)
        weight = segment_softmax(functional.leaky_relu(score, SLOPE), ctx.target, ctx.n_atoms)
        message = gather(p, ctx.source) * weight.unsqueeze(1)
        c = functional.elu(segment_sum(message, ctx.target, ctx.n_atoms) + self.bias)
        return cast(Tensor, self.gru(c, h)).relu()


class AttentiveFP(Family):
    """AttentiveFP: the state lives on atoms.

    The first layer is special, as it alone sees the bonds, in its attention:

        x[v]     = act(A codes[v])
        j[e]     = act(B x[u] + E bond codes[e])                for e = (u -> v)
        a[e]     = softmax into v of act(s . j[e] + t . x[v])
        c[v]     = elu(sum of a[e] P x[u] + bias)
        h0[v]    = relu(GRU(input c, hidden x))

    Source: Xiong et al. 2020, doi 10.1021/acs.jmedchem.9b00959, and
    `torch_geometric.nn.models.attentive_fp`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        w = self.width
        self.atom_in = atom_encoder(w)
        self.atom_bias = nn.Parameter(torch.zeros(w))
        self.neighbour = nn.Linear(w, w, bias=False)
        self.bond_in = bond_encoder(w, beside=w)
        self.score_bond = nn.Linear(w, 1, bias=False)
        self.score_atom = nn.Linear(w, 1, bias=False)
        self.project = nn.Linear(w, w, bias=False)
        self.bias = nn.Parameter(torch.zeros(w))
        self.gru = nn.GRUCell(w, w)

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the atom context."""
        source, target = g.edge_index[0], g.edge_index[1]
        n = g.atom_codes.shape[0]
        x = functional.leaky_relu(self.atom_in(g.atom_codes) + self.atom_bias, SLOPE)
        j = gather(self.neighbour(x), source) + self.bond_in(g.bond_codes)
        j = functional.leaky_relu(j, SLOPE)
        score = self.score_bond(j).squeeze(1) + gather(self.score_atom(x).squeeze(1), target)
        weight = segment_softmax(functional.leaky_relu(score, SLOPE), target, n)
        message = gather(self.project(x), source) * weight.unsqueeze(1)
        c = functional.elu(segment_sum(message, target, n) + self.bias)
        return self.gru(c, x).relu(), AtomContext(source, target, n)

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return NeighbourAttention(self.width)

    def finish(self, h: Tensor, ctx: AtomContext, g: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return the atoms [n_atoms, width] and their molecules."""
        return h, g.graph_id

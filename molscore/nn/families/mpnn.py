"""Message passing with an edge network (MPNN): every bond is a matrix, a GRU updates the atom."""

from typing import Final, cast

from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.families.atoms import AtomContext, AtomFamily, BondBlock, building_pyg
from molscore.nn.families.base import Block

MATRIX: Final = 32
"""Rows and columns of a bond's matrix, at most: 4 KB a directed bond."""
HIDDEN: Final = 64
"""Width of the hidden layer of the edge network."""


class EdgeNetworkBlock(BondBlock):
    """Messages through a matrix per bond, then a GRU cell.

        A[uv]   = reshape(N e[uv] + c)                        [d, d], once per pass
        m[v]    = sum of P h[u] A[uv] over u in N(v), and b   [d]
        F(h)[v] = GRU(input m[v], hidden h[v])

    P leads from the width to d = 32 (the width, if that is less), so that the matrices stay
    small. e is the first layer of the edge network, which all blocks share (`begin`); N and c
    are its second.

    Source: Gilmer et al. 2017, arXiv 1704.01212, section 5 ("Edge Network");
    `torch_geometric.nn.NNConv` without root weight.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        d = min(MATRIX, width)
        self.down = nn.Linear(width, d, bias=False)
        self.edge = nn.Linear(HIDDEN, d * d)
        with building_pyg():
            from torch_geometric.nn import NNConv  # noqa: PLC0415 (costs seconds)

            # Its network is left empty: it would run at every application.
            self.conv = NNConv(d, d, nn.Identity(), root_weight=False, node_dim=0)
        self.gru = nn.GRUCell(d, width)

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        m = self.conv(self.down(h), ctx.edge_index, ctx.edge_attr)
        return cast(Tensor, self.gru(m, h))


class MessagePassingNetwork(AtomFamily):
    """MPNN: the state lives on atoms.

    e[uv] = act(B bond codes[uv])                         [64]
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, bond_width=HIDDEN)

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the hidden layer of the edge network."""
        h0, ctx = super().begin(g)
        return h0, ctx._replace(edge_attr=functional.leaky_relu(ctx.edge_attr, SLOPE))

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return EdgeNetworkBlock(self.width)

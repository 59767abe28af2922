"""Graph convolution (GCN): a normalised mean over an atom and its neighbours."""

from typing import cast

from torch import Tensor
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.encoder import N_ATOM_CODES, N_BOND_CODES, atom_encoder, bond_encoder
from molscore.nn.families.atoms import AtomContext, AtomFamily, building_pyg, loop_index
from molscore.nn.families.base import Block
from molscore.nn.scatter import gather, segment_sum


class ConvolutionBlock(Block):
    """One graph convolution.

        F(h)[v] = act(W sum of h[u] / sqrt(d[u] d[v]) + b)    over u in N(v) and v itself

    d[v] is the number of neighbours of v, and one.

    Source: Kipf and Welling 2017, arXiv 1609.02907, equation 2; `torch_geometric.nn.GCNConv`.
    The activation is leaky.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        with building_pyg():
            from torch_geometric.nn import GCNConv  # noqa: PLC0415 (costs seconds)

            # The weights of the messages depend on the graph alone: `begin` computes them.
            self.conv = GCNConv(width, width, normalize=False, node_dim=0)

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h)."""
        z = cast(Tensor, self.conv(h, ctx.edge_index, ctx.edge_attr))
        return functional.leaky_relu(z, SLOPE)


class GraphConvolution(AtomFamily):
    """GCN: the state lives on atoms.

    The convolution sees no bond orders, so an atom's first state holds the sum of its bonds:

        h0[v] = act(A codes[v] + sum of B bond codes[uv] over its bonds)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        # Both are added before the activation, as one linear layer on both.
        self.atom_in = atom_encoder(self.width, beside=N_BOND_CODES)
        self.bond_in = bond_encoder(self.width, beside=N_ATOM_CODES)

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the messages with their weights [m]."""
        n = g.atom_codes.shape[0]
        bonds = segment_sum(self.bond_in(g.bond_codes), g.edge_index[1], n)
        h0 = functional.leaky_relu(self.atom_in(g.atom_codes) + bonds, SLOPE)
        edge_index = loop_index(g)
        source, target = edge_index[0], edge_index[1]
        # Every atom has its loop, so no degree is zero.
        scale = segment_sum(h0.new_ones(target.shape[0]), target, n).rsqrt()
        return h0, AtomContext(edge_index, gather(scale, source) * gather(scale, target))

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return ConvolutionBlock(self.width)

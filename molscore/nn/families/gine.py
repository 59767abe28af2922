"""Graph isomorphism network with bonds (GINE)."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.families.atoms import AtomContext, AtomFamily, BondBlock, building_pyg
from molscore.nn.families.base import Block


class IsomorphismBlock(BondBlock):
    """Sums over neighbours, then a perceptron of two layers.

        z[v]    = (1 + eps) h[v] + sum of relu(h[u] + E e[uv]) over u in N(v)
        F(h)[v] = act(W2 act(W1 z[v] + b1) + b2)

    eps is learned and starts at zero; W1 leads to twice the width. There is no batch
    normalisation, which would make a molecule depend on its neighbours in the batch.

    Source: Hu et al. 2020, arXiv 1905.12265, appendix A, on Xu et al. 2019, arXiv 1810.00826,
    equation 4.1; `torch_geometric.nn.GINEConv`. The activation is leaky.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        perceptron = nn.Sequential(
            nn.Linear(width, 2 * width), nn.LeakyReLU(SLOPE), nn.Linear(2 * width, width)
        )
        with building_pyg():
            from torch_geometric.nn import GINEConv  # noqa: PLC0415 (costs seconds)

            self.conv = GINEConv(perceptron, train_eps=True, node_dim=0)
        self.edge = nn.Linear(width, width)

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        z = cast(Tensor, self.conv(h, ctx.edge_index, ctx.edge_attr))
        return functional.leaky_relu(z, SLOPE)


class GraphIsomorphism(AtomFamily):
    """GINE: the state lives on atoms."""

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return IsomorphismBlock(self.width)

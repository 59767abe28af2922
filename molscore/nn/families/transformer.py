"""Graph transformer: attention along bonds in a pre-norm transformer block."""

from torch import Tensor, nn

from molscore.nn.activation import SLOPE
from molscore.nn.families.atoms import (
    AtomContext,
    AtomFamily,
    BondBlock,
    building_pyg,
    n_heads,
)
from molscore.nn.families.base import Block


class TransformerBlock(BondBlock):
    """Attention over the neighbours of an atom, then a perceptron, each on a residual.

        x       = norm1(h)
        a[uv]   = softmax over u in N(v) of Q x[v] . (K x[u] + E e[uv]) / sqrt(d)
        y[v]    = h[v] + O (sum of a[uv] (V x[u] + E e[uv]))
        F(h)[v] = y[v] + W2 act(W1 norm2(y[v]))

    Q x, K x, V x and E e are cut into heads of width d. An atom without bonds gathers nothing
    and keeps its residual. The residuals make a native stack the usual transformer, and a
    contractive step h + dt (F(h) - h) an Euler step along what its two layers add.

    Source: `torch_geometric.nn.TransformerConv` without root weight (Shi et al. 2021, arXiv
    2009.03509, equations 3 and 4), in the block of Xiong et al. 2020, arXiv 2002.04745,
    figure 1b.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        heads = n_heads(width)
        self.norm1 = nn.LayerNorm(width)
        with building_pyg():
            from torch_geometric.nn import TransformerConv  # noqa: PLC0415 (costs seconds)

            # Without biases: that of the keys would cancel in the softmax, and those of the
            # norm and of `out` do the work of the others.
            self.conv = TransformerConv(
                width, width // heads, heads, edge_dim=width, root_weight=False, bias=False
            )
        del self.conv.lin_skip  # made by PyG also where there is no root weight
        self.edge, self.conv.lin_edge = self.conv.lin_edge, nn.Identity()
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 2 * width), nn.LeakyReLU(SLOPE), nn.Linear(2 * width, width)
        )

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        y = h + self.out(self.conv(self.norm1(h), ctx.edge_index, ctx.edge_attr))
        z: Tensor = y + self.perceptron(self.norm2(y))
        return z


class GraphTransformer(AtomFamily):
    """Graph transformer: the state lives on atoms.

    A pre-norm stack usually ends in one more norm. Here the atoms are summed next, and a norm
    would take from each how much it has to say: on two other sets of measured solubilities and
    free energies it cost a seventh of the error.
    """

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return TransformerBlock(self.width)

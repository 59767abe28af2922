"""Graph attention (GAT): a weighted mean over an atom and its neighbours."""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.batch import GraphBatch
from molscore.nn.families.atoms import (
    AtomContext,
    AtomFamily,
    BondBlock,
    building_pyg,
    n_heads,
    with_loops,
)
from molscore.nn.families.base import Block


class AttentionBlock(BondBlock):
    """One layer of graph attention, its heads side by side.

        a[uv]   = softmax over u of leaky(s . W h[u] + t . W h[v] + r . E e[uv])
        F(h)[v] = elu(sum of a[uv] W h[u] + b)                over u in N(v) and v itself

    W h and E e are cut into heads, each with s, t and r of its own; the bond of an atom with
    itself is the mean of its bonds. The slope in the attention is 0.2, as published.

    Source: Velickovic et al. 2018, arXiv 1710.10903, equations 1 to 5, with bonds as in
    `torch_geometric.nn.GATConv`.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        heads = n_heads(width)
        with building_pyg():
            self.conv = self.convolution()(
                width, width // heads, heads, edge_dim=width, add_self_loops=False
            )
        self.edge, self.conv.lin_edge = self.conv.lin_edge, nn.Identity()

    @staticmethod
    def convolution() -> Callable[..., Any]:
        """Return PyG's layer."""
        from torch_geometric.nn import GATConv  # noqa: PLC0415 (costs seconds)

        return cast(Callable[..., Any], GATConv)

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        return functional.elu(cast(Tensor, self.conv(h, ctx.edge_index, ctx.edge_attr)))


class GraphAttention(AtomFamily):
    """GAT: the state lives on atoms; an atom attends to its neighbours and itself."""

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the bonds embedded, with those to oneself."""
        h0, ctx = super().begin(g)
        return h0, with_loops(ctx, g)

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return AttentionBlock(self.width)

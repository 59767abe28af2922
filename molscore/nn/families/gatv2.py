"""Graph attention with dynamic scores (GATv2)."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.batch import GraphBatch
from molscore.nn.families.atoms import (
    AtomContext,
    AtomFamily,
    building_pyg,
    n_heads,
    with_loops,
)
from molscore.nn.families.base import Block


class DynamicAttentionBlock(Block):
    """One layer of dynamic graph attention, its heads side by side.

        a[uv]   = softmax over u of s . leaky(L h[u] + R h[v] + E e[uv])
        F(h)[v] = elu(sum of a[uv] L h[u] + b)                over u in N(v) and v itself

    L h, R h and E e are cut into heads, each with an s of its own; the bond of an atom with
    itself is the mean of its bonds. The slope in the attention is 0.2, as published.

    Source: Brody et al. 2022, arXiv 2105.14491, equation 7, with bonds as in
    `torch_geometric.nn.GATv2Conv`.

    Shape:
        h: [n_atoms, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        heads = n_heads(width)
        with building_pyg():
            from torch_geometric.nn import GATv2Conv  # noqa: PLC0415 (costs seconds)

            self.conv = GATv2Conv(
                width, width // heads, heads, edge_dim=width, add_self_loops=False
            )
        # E e does not change over the applications: `prepare` computes it.
        self.edge, self.conv.lin_edge = self.conv.lin_edge, nn.Identity()

    def prepare(self, ctx: AtomContext) -> AtomContext:
        """Return the context with the bonds projected, E e."""
        return ctx._replace(edge_attr=self.edge(ctx.edge_attr))

    def forward(self, h: Tensor, ctx: AtomContext) -> Tensor:
        """Return F(h); `ctx` comes from `prepare`."""
        return functional.elu(cast(Tensor, self.conv(h, ctx.edge_index, ctx.edge_attr)))


class GraphAttentionV2(AtomFamily):
    """GATv2: the state lives on atoms; an atom attends to its neighbours and itself."""

    def begin(self, g: GraphBatch) -> tuple[Tensor, AtomContext]:
        """Return h0 [n_atoms, width] and the bonds embedded, with those to oneself."""
        h0, ctx = super().begin(g)
        return h0, with_loops(ctx, g)

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return DynamicAttentionBlock(self.width)

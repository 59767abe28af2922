"""Graph attention with dynamic scores (GATv2)."""

from collections.abc import Callable
from typing import Any, cast

from molscore.nn.families.base import Block
from molscore.nn.families.gat import AttentionBlock, GraphAttention


class DynamicAttentionBlock(AttentionBlock):
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

    @staticmethod
    def convolution() -> Callable[..., Any]:
        """Return PyG's layer."""
        from torch_geometric.nn import GATv2Conv  # noqa: PLC0415 (costs seconds)

        return cast(Callable[..., Any], GATv2Conv)


class GraphAttentionV2(GraphAttention):
    """GATv2: the state lives on atoms; an atom attends to its neighbours and itself."""

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return DynamicAttentionBlock(self.width)

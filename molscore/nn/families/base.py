"""What a block family has to say: how a state begins, what one block does, how it ends."""

from typing import Any

from torch import Tensor, nn

from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.score.depth import Block

__all__ = ["Block", "Family"]


class Family(nn.Module):
    """A graph network without its depth, readout and head.

    The model runs `begin`, then a depth plan over blocks from `make_block`, then `finish`:

        h0, ctx = begin(g)
        h       = depth(h0, ctx)
        rows, owner = finish(h, ctx, g)

    Args:
        config: the model's configuration.
        n_descriptors: only given to a family that is registered as made of descriptors.
    """

    def __init__(self, config: ModelConfig, n_descriptors: int = 0) -> None:
        super().__init__()
        self.width = config.width

    def begin(self, g: GraphBatch) -> tuple[Tensor, Any]:
        """Return the first state [m, width] and what the blocks need beside it."""
        raise NotImplementedError(f"{type(self).__name__} does not define begin")

    def make_block(self) -> Block:
        """Return a new block F with weights of its own."""
        raise NotImplementedError(f"{type(self).__name__} does not define make_block")

    def finish(self, h: Tensor, ctx: Any, g: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return rows [r, width] and the molecule that owns each, int64 [r]."""
        raise NotImplementedError(f"{type(self).__name__} does not define finish")

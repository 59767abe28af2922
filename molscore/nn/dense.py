"""The plain layer: a square linear map and an activation."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.score.depth import Block


class DenseBlock(Block):
    """One hidden layer of a multilayer perceptron.

        F(h) = act(W h + b)

    The first state is not re-injected, so that the native stack of these is the ordinary
    perceptron; a contractive step keeps a share of it by itself.

    Source: arXiv 2603.10544 (SCORE-MLP: one hidden layer, applied K times).

    Shape:
        h: [m, width] -> the same
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, h: Tensor, ctx: Any) -> Tensor:
        """Return F(h); `ctx` is not looked at."""
        return functional.leaky_relu(self.linear(h), SLOPE)

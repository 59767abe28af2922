"""A multilayer perceptron on the descriptors of a molecule; no graph."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.dense import DenseBlock
from molscore.nn.families.base import Block, Family


class DescriptorNetwork(Family):
    """MLP: the state lives on molecules.

        h0      = act(A d + a)
        F(h)    = act(W h + b)
        rows    = h, one a molecule

    d are the scaled descriptors. A molecule has one row, so no readout follows, and the head
    is not given the descriptors again. With the native plan this is the ordinary perceptron;
    with `score` its hidden layers are one, applied K times.

    Source: arXiv 2603.10544 (SCORE-MLP).

    Args:
        config: the model's configuration.
        n_descriptors: numbers per molecule, at least 1.
    """

    def __init__(self, config: ModelConfig, n_descriptors: int) -> None:
        super().__init__(config)
        if n_descriptors < 1:
            raise ValueError("an mlp is made of descriptors and was given none")
        self.read = nn.Linear(n_descriptors, self.width)

    def begin(self, g: GraphBatch) -> tuple[Tensor, None]:
        """Return h0 [n_graphs, width]; the blocks need nothing beside the state."""
        if g.descriptors is None:
            raise ValueError("this model takes descriptors and got none")
        return functional.leaky_relu(self.read(g.descriptors), SLOPE), None

    def make_block(self) -> Block:
        """Return a block with weights of its own."""
        return DenseBlock(self.width)

    def finish(self, h: Tensor, ctx: None, g: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return the molecules [n_graphs, width], each its own owner."""
        return h, torch.arange(h.shape[0], device=h.device)

"""From rows owned by molecules to one vector a molecule."""

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.config import ModelConfig
from molscore.nn.scatter import gather, segment_mean, segment_softmax, segment_sum


class VirtualNode(nn.Module):
    """Virtual-node pooling (MolAttFP): a molecule node attends to its rows.

        m     = relu(sum of the molecule's rows)
        a[i]  = softmax within the molecule of act(s . P r[i] + t . P m)
        c     = elu(sum of a[i] P r[i] + bias)
        m     <- relu(GRU(input c, hidden m))            `steps` times, shared weights

    Source: Xiong et al. 2020, doi 10.1021/acs.jmedchem.9b00959, equations 7 to 9; equals the
    readout of `torch_geometric.nn.AttentiveFP` without dropout.

    Shape:
        rows [r, width], owner int64 [r] -> [n_graphs, width]
    """

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.project = nn.Linear(width, width, bias=False)
        self.score_row = nn.Linear(width, 1, bias=False)
        self.score_node = nn.Linear(width, 1, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.gru = nn.GRUCell(width, width)

    def forward(self, rows: Tensor, owner: Tensor, n_graphs: int) -> Tensor:
        """Return one vector a molecule."""
        node = segment_sum(rows, owner, n_graphs).relu()
        p = self.project(rows)
        row_score = self.score_row(p).squeeze(1)
        for _ in range(self.steps):
            node_score = self.score_node(self.project(node)).squeeze(1)
            score = functional.leaky_relu(row_score + gather(node_score, owner), SLOPE)
            weight = segment_softmax(score, owner, n_graphs)
            c = segment_sum(p * weight.unsqueeze(1), owner, n_graphs)
            node = self.gru(functional.elu(c + self.bias), node).relu()
        return node


class SumReadout(nn.Module):
    """The sum of a molecule's rows: [r, width] -> [n_graphs, width]."""

    def forward(self, rows: Tensor, owner: Tensor, n_graphs: int) -> Tensor:
        """Return one vector a molecule."""
        return segment_sum(rows, owner, n_graphs)


class MeanReadout(nn.Module):
    """The mean of a molecule's rows: [r, width] -> [n_graphs, width]."""

    def forward(self, rows: Tensor, owner: Tensor, n_graphs: int) -> Tensor:
        """Return one vector a molecule."""
        return segment_mean(rows, owner, n_graphs)


class RowReadout(nn.Module):
    """The row itself, of molecules that have one: [n_graphs, width] -> the same."""

    def forward(self, rows: Tensor, owner: Tensor, n_graphs: int) -> Tensor:
        """Return one vector a molecule."""
        return rows


READOUTS: Final[dict[str, Callable[[ModelConfig], nn.Module]]] = {
    "virtual-node": lambda config: VirtualNode(config.width, config.readout_steps),
    "sum": lambda config: SumReadout(),
    "mean": lambda config: MeanReadout(),
}

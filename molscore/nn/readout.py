"""From rows owned by molecules to one vector a molecule."""

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.config import ModelConfig
from molscore.nn.scatter import gather, segment_attention, segment_mean, segment_sum


class VirtualNode(nn.Module):
    """Virtual-node pooling (MolAttFP): a molecule node attends to its rows.

        m     = relu(sum of the molecule's rows)
        a[i]  = softmax within the molecule of act(s . P r[i] + t . P m)
        c     = elu(P (sum of a[i] r[i]) + bias)
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
        # s . P r = (P^T s) . r, and P comes before a sum: only molecules are projected, not rows.
        # (ONNX Runtime multiplies with a column far faster than with a vector.)
        row_score = (rows @ self.score_row(self.project.weight.t())).squeeze(1)
        to_node_score = self.score_node(self.project.weight.t())
        for _ in range(self.steps):
            node_score = (node @ to_node_score).squeeze(1)
            score = functional.leaky_relu(row_score + gather(node_score, owner), SLOPE)
            mixed = segment_attention(rows, score, owner, n_graphs)
            c = functional.linear(mixed, self.project.weight, self.bias)
            node = self.gru(functional.elu(c), node).relu()
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

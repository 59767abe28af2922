"""From integer codes to vectors."""

import math
from typing import Final

import torch
from torch import Tensor, nn

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, Feature
from molscore.nn.tracing import exporting


class CodeEncoder(nn.Module):
    """Sum of one embedding per feature: x_i = sum_f E_f[code_if].

    The same as a linear layer on concatenated one-hot codes.

    Args:
        features: the features, in the column order of the codes.
        width: width of the result.
        beside: inputs of whatever else is added to the result before an activation, as if all
            were concatenated in front of one linear layer.

    Shape:
        codes: int64 [n, n_features] -> float32 [n, width]
    """

    def __init__(self, features: tuple[Feature, ...], width: int, beside: int = 0) -> None:
        super().__init__()
        sizes = [len(f.labels) for f in features]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        self.sizes = tuple(sizes)
        self.register_buffer("offset", torch.tensor(starts), persistent=False)
        self.offset: Tensor
        # The variance of a default linear layer on the concatenated one-hot codes. A larger
        # start costs accuracy on small data: codes that are rare keep much of it, as noise.
        fan_in = sum(sizes) + beside
        self.weight = nn.Parameter(torch.randn(sum(sizes), width) / math.sqrt(3 * fan_in))

    def forward(self, codes: Tensor) -> Tensor:
        """Return the encoded rows."""
        index = codes + self.offset
        # One-hot after all: on a CPU the gradient of a small product is far cheaper than the
        # sort behind that of an embedding, and ONNX Runtime takes half the time for it.
        hot = self.weight.new_zeros((codes.shape[0], self.weight.shape[0]))
        if exporting():  # in the form whose operator a bundle may hold
            hot = hot.scatter_reduce(1, index, hot.new_ones(index.shape), "sum")
        else:
            hot.scatter_(1, index, 1.0)
        return hot @ self.weight

    @torch.no_grad()
    def forget_unseen(self, codes: Tensor) -> None:
        """Set the rows of codes that never occur in `codes` to zero.

        Such a row gets no gradient, so without this it would keep its random start and an
        element never seen in training would add noise; at zero it adds nothing. Weight decay
        keeps it there.
        """
        seen = torch.zeros(self.weight.shape[0], dtype=torch.bool)
        seen[(codes + self.offset).reshape(-1)] = True
        self.weight[~seen] = 0.0


N_ATOM_CODES: Final = sum(map(len, ATOM_FEATURES))
N_BOND_CODES: Final = sum(map(len, BOND_FEATURES))


def atom_encoder(width: int, beside: int = 0) -> CodeEncoder:
    """Return an encoder of `GraphBatch.atom_codes`."""
    return CodeEncoder(ATOM_FEATURES, width, beside)


def bond_encoder(width: int, beside: int = 0) -> CodeEncoder:
    """Return an encoder of `GraphBatch.bond_codes`."""
    return CodeEncoder(BOND_FEATURES, width, beside)

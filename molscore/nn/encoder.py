"""From integer codes to vectors."""

import math
from typing import Final

import torch
from torch import Tensor, nn

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, Feature


class CodeEncoder(nn.Module):
    """Sum of one embedding per feature: x_i = sum_f E_f[code_if].

    The same as a linear layer on concatenated one-hot codes.

    Args:
        features: the features, in the column order of the codes.
        width: width of the result.
        beside: inputs of whatever else is added to the result before an activation, as if all
            were concatenated in front of one linear layer.

    Shape:
        codes: int64 [n, n_features], plus: float32 [n, width] or None -> float32 [n, width]
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

    def forward(self, codes: Tensor, plus: Tensor | None = None) -> Tensor:
        """Return the encoded rows, or the sum of them and `plus`."""
        # One-hot after all: a small product is cheaper than adding up a row per feature, and on
        # a CPU its gradient far cheaper than the sort behind that of an embedding.
        hot = self.weight.new_zeros((codes.shape[0], self.weight.shape[0]))
        hot.scatter_(1, codes + self.offset, 1.0)
        return hot @ self.weight if plus is None else torch.addmm(plus, hot, self.weight)

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

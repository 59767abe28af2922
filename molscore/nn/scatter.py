"""Sums and softmaxes over the rows of a group, without a sparse library.

All work on contiguous rows along dimension 0 through `index_select` and `index_add`, whose
backward passes are each other's forward; advanced indexing is several times slower on a CPU.
"""

import torch
from torch import Tensor


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Return rows x[index]: [n, ...] and int64 [m] -> [m, ...]."""
    return x.index_select(0, index)


def segment_sum(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """Return the sum of the rows of each owner.

    Args:
        x: [m, ...]
        owner: int64 [m], values in 0..n-1
        n: number of owners; one without rows gets zero

    Returns:
        [n, ...]
    """
    return x.new_zeros((n, *x.shape[1:])).index_add_(0, owner, x)


def segment_mean(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """Return the mean of the rows of each owner: [m, ...] -> [n, ...]; zero without rows."""
    count = segment_sum(x.new_ones((x.shape[0], 1)), owner, n)
    return segment_sum(x, owner, n) / count.clamp(min=1.0)


def segment_softmax(score: Tensor, owner: Tensor, n: int) -> Tensor:
    """Return the softmax of the scores of each owner.

    The maximum of each owner is subtracted first, so large scores do not overflow.

    Args:
        score: [m]
        owner: int64 [m], values in 0..n-1
        n: number of owners

    Returns:
        [m], non-negative, summing to one within each owner.
    """
    e = _exponential(score, owner, n)
    return e / segment_sum(e, owner, n).index_select(0, owner)


def segment_attention(x: Tensor, score: Tensor, owner: Tensor, n: int) -> Tensor:
    """Return the mean of the rows of each owner, weighted by the softmax of their scores.

    Args:
        x: [m, width]
        score: [m]
        owner: int64 [m], values in 0..n-1
        n: number of owners; one without rows gets zero

    Returns:
        [n, width]
    """
    e = _exponential(score, owner, n).unsqueeze(1)
    # The largest term of each owner is 1, so the bound acts on owners without rows alone.
    return segment_sum(x * e, owner, n) / segment_sum(e, owner, n).clamp(min=1.0)


def _exponential(score: Tensor, owner: Tensor, n: int) -> Tensor:
    """Return exp(score - the largest score of its owner), [m]."""
    # The shift cancels in value and in gradient, so it is kept out of the graph.
    top = torch.full((n,), float("-inf"), dtype=score.dtype, device=score.device)
    top = top.scatter_reduce(0, owner, score.detach(), reduce="amax", include_self=True)
    return (score - top.index_select(0, owner)).exp()

import numpy as np
import pytest
import torch

from molscore.nn.scatter import gather, segment_mean, segment_softmax, segment_sum

OWNER = torch.tensor([0, 0, 2, 2, 2, 3])
ROWS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))


def by_hand(reduce, empty):
    out = np.full((5, 3), empty, dtype=np.float32)
    for k in set(OWNER.tolist()):
        out[k] = reduce(ROWS.numpy()[OWNER.numpy() == k], axis=0)
    return torch.from_numpy(out)


def test_sum_and_mean_over_owners_with_some_that_own_nothing():
    torch.testing.assert_close(segment_sum(ROWS, OWNER, 5), by_hand(np.sum, 0.0))
    torch.testing.assert_close(segment_mean(ROWS, OWNER, 5), by_hand(np.mean, 0.0))


def test_softmax_sums_to_one_within_each_owner():
    weights = segment_softmax(ROWS[:, 0], OWNER, 5)
    sums = segment_sum(weights.unsqueeze(1), OWNER, 5).squeeze(1)
    torch.testing.assert_close(sums, torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]))
    torch.testing.assert_close(weights[2:5], torch.softmax(ROWS[2:5, 0], dim=0))


def test_softmax_of_huge_scores_does_not_overflow():
    weights = segment_softmax(torch.tensor([1e30, 1e30, -1e30, 5e4, -5e4, 0.0]), OWNER, 4)
    assert torch.isfinite(weights).all()
    torch.testing.assert_close(weights[:2], torch.tensor([0.5, 0.5]))


def test_softmax_gradient_is_that_of_torch():
    score = torch.randn(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: segment_softmax(s, OWNER, 4), (score,))


def test_gather_repeats_rows():
    assert torch.equal(gather(ROWS, torch.tensor([5, 5, 0])), ROWS[[5, 5, 0]])


@pytest.mark.parametrize("function", [segment_sum, segment_mean])
def test_no_rows_give_zeros(function):
    out = function(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), 2)
    assert torch.equal(out, torch.zeros(2, 3))


def test_softmax_of_nothing_is_nothing():
    assert segment_softmax(torch.zeros(0), torch.zeros(0, dtype=torch.int64), 2).shape == (0,)

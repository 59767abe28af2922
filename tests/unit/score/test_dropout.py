import pytest
import torch

from molscore.score.dropout import StateDropout


def test_drops_the_stated_share_and_keeps_the_expectation():
    torch.manual_seed(0)
    drop = StateDropout(0.1).train()
    x = torch.ones(1000, 1001)
    y = drop(x)
    assert float((y == 0).double().mean()) == pytest.approx(drop.p, abs=1e-3)
    assert drop.p == pytest.approx(0.1, abs=1 / 512)
    assert float(y.double().mean()) == pytest.approx(1.0, abs=2e-3)


def test_every_position_is_independent():
    # Eight neighbours share one draw of 64 bits: their bytes must not be correlated.
    torch.manual_seed(1)
    kept = (StateDropout(0.5).train()(torch.ones(100_000, 8)) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(8, dtype=torch.float64)
    assert float(correlation.abs().max()) < 0.02


def test_gradient_passes_where_it_was_kept_and_nowhere_else():
    torch.manual_seed(2)
    drop = StateDropout(0.3).train()
    x = torch.randn(50, 9, requires_grad=True)
    y = drop(x)
    y.sum().backward()
    scale = 256 / (256 - drop.threshold)
    expected = torch.where(y == 0, 0.0, scale)
    torch.testing.assert_close(x.grad, expected)


def test_same_seed_same_mask():
    drop, x = StateDropout(0.4).train(), torch.ones(33, 5)
    torch.manual_seed(7)
    first = drop(x)
    torch.manual_seed(7)
    assert torch.equal(drop(x), first)


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_evaluation_changes_nothing(p):
    x = torch.randn(4, 4)
    assert StateDropout(p).eval()(x) is x


def test_no_rows_are_fine():
    assert StateDropout(0.5).train()(torch.ones(0, 8)).shape == (0, 8)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match="probability"):
        StateDropout(p)

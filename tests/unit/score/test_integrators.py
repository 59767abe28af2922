import math

import pytest
import torch

from molscore.score.integrators import STEPS, dropped_euler, euler

TOWARDS = torch.tensor([2.0, -1.0])


def constant(_h):
    return TOWARDS


@pytest.mark.parametrize("name", STEPS)
def test_dt_zero_returns_h(name):
    h = torch.randn(3, 2)
    assert torch.equal(STEPS[name](torch.tanh, h, 0.0), h)


def test_euler_at_one_returns_f_exactly():
    h = torch.randn(100, 7) * 1e6
    assert torch.equal(euler(torch.tanh, h, 1.0), torch.tanh(h))


def test_euler_is_the_convex_combination():
    h = torch.randn(5, 4)
    expected = 0.7 * h + 0.3 * torch.tanh(h)
    torch.testing.assert_close(euler(torch.tanh, h, 0.3), expected)


@pytest.mark.parametrize(
    ("name", "order"), [("euler", 1), ("heun", 2), ("midpoint", 2), ("rk4", 4)]
)
def test_order_of_convergence_on_a_known_solution(name, order):
    # dh/dt = F(h) - h with F constant has h(t) = F + (h0 - F) exp(-t).
    h0 = torch.tensor([0.0, 3.0], dtype=torch.float64)
    exact = TOWARDS.double() + (h0 - TOWARDS.double()) * math.exp(-1.0)

    def error(n):
        h = h0
        for _ in range(n):
            h = STEPS[name](lambda _u: TOWARDS.double(), h, 1.0 / n)
        return float((h - exact).abs().max())

    observed = math.log2(error(8) / error(16))
    assert observed == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize(
    ("name", "calls"), [("euler", 1), ("heun", 2), ("midpoint", 2), ("rk4", 4)]
)
def test_evaluations_of_f(name, calls):
    seen = []

    def f(u):
        seen.append(u)
        return torch.tanh(u)

    STEPS[name](f, torch.randn(2, 2), 0.5)
    assert len(seen) == calls


@pytest.mark.parametrize("name", STEPS)
def test_takes_a_learned_step_and_differentiates_it(name):
    dt = torch.tensor(0.4, requires_grad=True)
    STEPS[name](constant, torch.zeros(2), dt).sum().backward()
    assert dt.grad is not None
    assert torch.isfinite(dt.grad)


@pytest.mark.parametrize("dt", [0.25, 0.5, 1.0])
def test_the_step_with_dropout_and_its_gradient_are_those_of_the_plain_one(dt):
    keep = (torch.rand(7, 3) > 0.3).double() / 0.7

    def plain(h, f):
        return euler(lambda _u: f, h, dt) * keep

    def ours(h, f):
        return dropped_euler(h, f, dt, keep)

    h, f = (torch.randn(7, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(ours(h, f), plain(h, f))
    torch.autograd.gradcheck(ours, (h, f))

"""One step of dh/dt = F(h) - h, by four explicit methods.

Euler is written as `(1 - dt) * h + dt * F(h)`, which is exact at dt = 0 (returns h) and at
dt = 1 (returns F(h), the ordinary stacked layer). The other methods evaluate F two to four
times and cost accordingly.

Source: arXiv 2603.10544, section 3; the methods themselves are the classical ones.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Update = Callable[[Tensor], Tensor]
Step = Callable[[Update, Tensor, "float | Tensor"], Tensor]


def euler(f: Update, h: Tensor, dt: "float | Tensor") -> Tensor:
    """H + dt * (F(h) - h), as a convex combination. One evaluation of F."""
    if isinstance(dt, float) and dt == 1.0:
        return f(h)
    return (1.0 - dt) * h + dt * f(h)


class _DroppedEuler(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, f: Tensor, dt: float, keep: Tensor) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.dt = dt
        return torch.lerp(h, f, dt).mul_(keep)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        grad = grad * keep
        of_f = grad * ctx.dt
        # A state is several times larger than what a core keeps close, so tensors count.
        of_h = of_f if ctx.dt == 0.5 else grad.mul_(1.0 - ctx.dt)
        return of_h, of_f, None, None


def dropped_euler(h: Tensor, f: Tensor, dt: float, keep: Tensor) -> Tensor:
    """((1 - dt) * h + dt * f) * keep, in fewer passes over memory; differentiable once.

    Args:
        h: the state.
        f: F(h).
        dt: a fixed step.
        keep: the mask of `StateDropout.mask`, of the shape of `h`.
    """
    return cast(Tensor, _DroppedEuler.apply(h, f, dt, keep))  # type: ignore[no-untyped-call]


def heun(f: Update, h: Tensor, dt: "float | Tensor") -> Tensor:
    """Explicit trapezoid rule, second order. Two evaluations of F."""
    k1 = f(h) - h
    u = h + dt * k1
    k2 = f(u) - u
    return h + (0.5 * dt) * (k1 + k2)


def midpoint(f: Update, h: Tensor, dt: "float | Tensor") -> Tensor:
    """Explicit midpoint rule, second order. Two evaluations of F."""
    u = h + (0.5 * dt) * (f(h) - h)
    return h + dt * (f(u) - u)


def rk4(f: Update, h: Tensor, dt: "float | Tensor") -> Tensor:
    """Classical Runge-Kutta, fourth order. Four evaluations of F."""
    k1 = f(h) - h
    u = h + (0.5 * dt) * k1
    k2 = f(u) - u
    u = h + (0.5 * dt) * k2
    k3 = f(u) - u
    u = h + dt * k3
    k4 = f(u) - u
    return h + (dt / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)


STEPS: Final[dict[str, Step]] = {"euler": euler, "heun": heun, "midpoint": midpoint, "rk4": rk4}

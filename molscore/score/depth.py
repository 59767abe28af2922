"""Depth: run a plan's blocks over a state.

The state `h` may be carried by bonds, atoms, molecules or tokens, and `ctx` is whatever the
family's blocks need beside it; nothing here looks inside either.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import torch
from torch import Tensor, nn

from molscore.score.dropout import StateDropout, dropped
from molscore.score.integrators import STEPS, dropped_euler
from molscore.score.plan import MAX_SCALE, DepthPlan, Stage
from molscore.score.tracing import exporting

DT_MIN: Final = 0.05
DT_START: Final = 0.5


class Block(nn.Module):
    """F in the SCORE step: a map from a state to a state of the same shape.

    A block keeps nothing between calls and uses no batch statistics, so a molecule's value
    never depends on its neighbours in a batch.
    """

    def prepare(self, ctx: Any) -> Any:
        """Compute what does not change over the repeated applications, once per pass."""
        return ctx

    def forward(self, h: Tensor, ctx: Any) -> Tensor:
        """Return F(h), of the shape of `h`."""
        raise NotImplementedError(f"{type(self).__name__} does not define F")

    def scaled(self, g: Tensor, ctx: Any, unit: float, scale: float) -> Tensor:
        """Return scale * F(unit * g). A block whose F is homogeneous can spare the products."""
        return scale * cast(Tensor, self(unit * g, ctx))


class StepSize(nn.Module):
    """The step of one application: fixed, 1/K, or learned in [0.05, 1].

    Args:
        stage: the stage it belongs to.
        n_applications: K, the applications in the whole plan.

    A learned step has one parameter per application, dt = 0.05 + 0.95 * sigmoid(theta), which
    starts at 0.5. Optimisers must not decay it (`no_decay`).
    """

    def __init__(self, stage: Stage, n_applications: int) -> None:
        super().__init__()
        self.fixed: float | None = None
        if stage.dt == "learned" and not stage.additive:
            start = (DT_START - DT_MIN) / (1.0 - DT_MIN)
            theta = torch.full((stage.blocks * stage.steps,), start).logit()
            self.theta = nn.Parameter(theta)
        elif stage.dt == "1/K":
            self.fixed = 1.0 / n_applications
        else:
            self.fixed = float(stage.dt)

    def forward(self, index: int) -> float | Tensor:
        """Return the step of application `index` of the stage."""
        if self.fixed is not None:
            return self.fixed
        return DT_MIN + (1.0 - DT_MIN) * torch.sigmoid(self.theta[index])


class StageRunner(nn.Module):
    """The blocks of one stage and how they are stepped."""

    def __init__(
        self,
        stage: Stage,
        make_block: Callable[[], Block],
        integrator: str,
        n_applications: int,
    ) -> None:
        super().__init__()
        self.steps = stage.steps
        self.additive = stage.additive
        self.integrator = integrator
        self.blocks = nn.ModuleList(make_block() for _ in range(stage.blocks))
        self.dt = StepSize(stage, n_applications)

    def update(self, block: Block, h: Tensor, ctx: Any, index: int, keep: Tensor | None) -> Tensor:
        """Apply `block` once: the contractive step, or h + F(h) in an additive stage.

        The result is multiplied by `keep`, the mask of the state dropout, where there is one.
        """
        dt = self.dt(index)
        if self.additive:
            new = h + cast(Tensor, block(h, ctx))
        elif keep is not None and self.integrator == "euler" and isinstance(dt, float):
            return dropped_euler(h, cast(Tensor, block(h, ctx)), dt, keep)
        else:
            new = STEPS[self.integrator](lambda u: cast(Tensor, block(u, ctx)), h, dt)
        return dropped(new, keep)

    @property
    def is_scalable(self) -> bool:
        """Whether `run_scaled` can take the steps of this stage."""
        dt = self.dt.fixed
        if self.additive or self.integrator != "euler" or dt is None or dt == 1.0:
            return False
        return dt / (1.0 - dt) <= MAX_SCALE

    def run_scaled(self, g: Tensor, ctx: Any) -> Tensor:
        """Take all steps of the stage in fewer passes over memory; for a graph to export.

        With h = unit * g the product with 1 - dt is left to the end, and dt goes into F:

            g <- g + (dt / (1 - dt) / unit) F(unit * g)
            unit <- (1 - dt) * unit

        For dt = 0.5 all factors are powers of two and the result is that of `update`.
        """
        dt, unit = cast(float, self.dt.fixed), 1.0
        growth = dt / (1.0 - dt)
        for b in self.blocks:
            block = cast(Block, b)
            prepared = block.prepare(ctx)
            for _ in range(self.steps):
                if growth / unit > MAX_SCALE:
                    g, unit = unit * g, 1.0
                g = g + block.scaled(g, prepared, unit, growth / unit)
                unit *= 1.0 - dt
        return unit * g


class Depth(nn.Module):
    """A depth plan carried out.

    Args:
        plan: what to run.
        make_block: builds one block with weights of its own.
        integrator: `euler`, `heun`, `midpoint` or `rk4`.
        dropout: probability of state dropout after each update. It belongs to the plan and not
            to F: dropped elements are redrawn at every step, also where a block is shared.
    """

    def __init__(
        self,
        plan: DepthPlan,
        make_block: Callable[[], Block],
        *,
        integrator: str = "euler",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        k = plan.n_applications
        self.stages = nn.ModuleList(
            StageRunner(stage, make_block, integrator, k) for stage in plan.stages
        )
        self.drop = StateDropout(dropout)

    def forward(self, h: Tensor, ctx: Any) -> Tensor:
        """Return the state after all applications, of the shape of `h`."""
        for module in self.stages:
            stage = cast(StageRunner, module)
            if exporting() and stage.is_scalable:
                h = stage.run_scaled(h, ctx)
                continue
            index = 0
            for b in stage.blocks:
                block = cast(Block, b)
                prepared = block.prepare(ctx)
                for _ in range(stage.steps):
                    h = stage.update(block, h, prepared, index, self.drop.mask(h))
                    index += 1
        return h

"""What an exported graph computes instead of the steps of a plan, and that it is the same."""

import pytest
import torch
from torch import Tensor, nn

from molscore.score.depth import Block, Depth, StageRunner
from molscore.score.plan import DepthPlan


class Layer(Block):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, h: Tensor, ctx: Tensor) -> Tensor:
        return torch.tanh(self.linear(h) + ctx)


def depth_of(plan: str, integrator: str = "euler") -> Depth:
    torch.manual_seed(0)
    return Depth(DepthPlan.parse(plan), Layer, integrator=integrator).double().eval()


def only_stage(depth: Depth) -> StageRunner:
    [stage] = depth.stages
    assert isinstance(stage, StageRunner)
    return stage


@pytest.mark.parametrize("plan", ["score", "skip05", "1x12@0.5", "2x9@0.8", "1x64@1/K", "3x2@0.9"])
def test_scaled_steps_give_the_state_of_the_plan(plan: str) -> None:
    depth = depth_of(plan)
    stage = only_stage(depth)
    assert stage.is_scalable
    h, ctx = torch.randn(2, 5, 6, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(stage.run_scaled(h, ctx), depth(h, ctx), rtol=1e-12, atol=1e-12)


def test_no_scale_leaves_its_bounds() -> None:
    seen: list[float] = []

    class Spy(Layer):
        def scaled(self, g: Tensor, ctx: Tensor, unit: float, scale: float) -> Tensor:
            seen.append(scale)
            return super().scaled(g, ctx, unit, scale)

    stage = only_stage(Depth(DepthPlan.parse("1x64@0.9"), Spy))
    stage.run_scaled(torch.zeros(1, 6), torch.zeros(1, 6))
    assert len(seen) == 64
    # The bundle's scan refuses a larger attribute.
    assert max(seen) <= 10.0


@pytest.mark.parametrize(
    ("plan", "integrator"),
    [
        ("native", "euler"),
        ("residual", "euler"),
        ("1x2@learned", "euler"),
        ("1x2@0.95", "euler"),
        ("score", "heun"),
    ],
)
def test_other_steps_are_taken_as_they_are(plan: str, integrator: str) -> None:
    assert not only_stage(depth_of(plan, integrator)).is_scalable

import pytest
import torch
from torch import nn

from molscore.score.depth import DT_MIN, Block, Depth
from molscore.score.plan import DepthPlan


class Affine(Block):
    """F(h) = h W + ctx, with a count of how often it was prepared and run."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4, bias=False)
        self.prepared = 0
        self.ran = 0

    def prepare(self, ctx):
        self.prepared += 1
        return ctx

    def forward(self, h, ctx):
        self.ran += 1
        return torch.tanh(self.linear(h) + ctx)


def depth(text, **options):
    torch.manual_seed(0)
    return Depth(DepthPlan.parse(text), Affine, **options)


def blocks_of(module):
    return [m for m in module.modules() if isinstance(m, Affine)]


H = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
CTX = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))


def test_score_equals_the_recurrence_written_out():
    module = depth("score")
    (block,) = blocks_of(module)
    h = H
    for _ in range(4):
        h = 0.5 * h + 0.5 * torch.tanh(block.linear(h) + CTX)
    torch.testing.assert_close(module(H, CTX), h)


def test_native_equals_a_plain_stack():
    module = depth("native")
    h = H
    for block in blocks_of(module):
        h = torch.tanh(block.linear(h) + CTX)
    assert torch.equal(module(H, CTX), h)


def test_residual_adds():
    module = depth("residual")
    h = H
    for block in blocks_of(module):
        h = h + torch.tanh(block.linear(h) + CTX)
    torch.testing.assert_close(module(H, CTX), h)


def test_two_by_two_runs_a_a_b_b():
    module = depth("2x2@0.5")
    a, b = blocks_of(module)
    h = H
    for block in (a, a, b, b):
        h = 0.5 * h + 0.5 * torch.tanh(block.linear(h) + CTX)
    torch.testing.assert_close(module(H, CTX), h)


def test_one_over_k_counts_the_whole_plan():
    module = depth("1x2@1/K,1x3@1/K")
    assert [stage.dt(0) for stage in module.stages] == [0.2, 0.2]


def test_blocks_are_prepared_once_a_pass():
    module = depth("1x4@0.5,2x3@0.5")
    module(H, CTX)
    assert [(b.prepared, b.ran) for b in blocks_of(module)] == [(1, 4), (1, 3), (1, 3)]


@pytest.mark.parametrize(("few", "many"), [("1x2@0.5", "1x9@0.5"), ("3x1@1/K", "3x7@1/K")])
def test_parameters_do_not_depend_on_steps(few, many):
    def count(text):
        return sum(p.numel() for p in depth(text).parameters())

    assert count(few) == count(many)


def test_learned_steps_start_at_one_half_and_stay_in_their_range():
    module = depth("2x3@learned")
    (stage,) = module.stages
    assert stage.dt.theta.shape == (6,)
    torch.testing.assert_close(stage.dt(5), torch.tensor(0.5))
    with torch.no_grad():
        stage.dt.theta.copy_(torch.tensor([-1e4, 1e4, 0, 0, 0, 0]))
    with torch.no_grad():
        assert float(stage.dt(0)) == pytest.approx(DT_MIN)
        assert float(stage.dt(1)) == pytest.approx(1.0)


def test_learned_steps_learn():
    module = depth("1x4@learned")
    module(H, CTX).pow(2).sum().backward()
    assert (module.stages[0].dt.theta.grad != 0).all()


def test_dropout_is_redrawn_at_every_application_and_off_in_evaluation(monkeypatch):
    module = depth("1x4@0.5", dropout=0.5)
    big = torch.ones(200, 4)
    ctx = torch.zeros(200, 4)
    masks, draw = [], module.drop.mask

    def recorded(h):
        masks.append(draw(h))
        return masks[-1]

    monkeypatch.setattr(module.drop, "mask", recorded)
    module.train()
    h = module(big, ctx)
    assert len(masks) == 4
    assert not torch.equal(masks[0], masks[1])
    assert (h[masks[-1] == 0] == 0).all()
    module.eval()
    assert torch.equal(module(big, ctx), module(big, ctx))

"""The head: one hidden layer, or as deep as its plan."""

import pytest
import torch
from torch.nn import functional

from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig
from molscore.nn.model import Head, build_model
from tests.molecules import VARIED, batch_of

M = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
D = torch.randn(5, 3, generator=torch.Generator().manual_seed(2))


def head(**options):
    torch.manual_seed(0)
    return Head(ModelConfig(width=8, **options), n_targets=2, n_descriptors=3).eval()


@torch.no_grad()
def first_layer(model):
    return functional.leaky_relu(model.hidden(M) + model.descriptors(D))


@torch.no_grad()
def test_without_a_plan_one_hidden_layer():
    model = head()
    assert torch.equal(model(M, D), model.out(first_layer(model)))
    # The names that stored bundles have.
    assert list(model.state_dict()) == [
        *("shift", "scale", "hidden.weight", "hidden.bias", "descriptors.weight"),
        *("out.weight", "out.bias"),
    ]


@torch.no_grad()
def test_native_stacks_hidden_layers():
    model = head(head_plan="3x1@1")
    z = first_layer(model)
    for block in model.depth.stages[0].blocks:
        z = functional.leaky_relu(block.linear(z))
    assert torch.equal(model(M, D), model.out(z))


@torch.no_grad()
def test_one_over_k_counts_the_steps_of_the_head():
    model = head(plan="1x7@0.5", head_plan="1x3@1/K")
    z = first_layer(model)
    (block,) = model.depth.stages[0].blocks
    for _ in range(3):
        z = 2 / 3 * z + 1 / 3 * functional.leaky_relu(block.linear(z))
    torch.testing.assert_close(model(M, D), model.out(z))


def test_integrator_and_dropout_are_those_of_the_trunk():
    model = head(head_plan="score", integrator="rk4", dropout=0.25)
    assert model.depth.drop.p == 0.25
    assert [stage.integrator for stage in model.depth.stages] == ["rk4"]
    torch.manual_seed(0)
    assert not torch.equal(model.train()(M, D), model(M, D))
    assert torch.equal(model.eval()(M, D), model(M, D))


def test_a_head_plan_leaves_the_trunk_as_it_was():
    torch.manual_seed(3)
    plain = build_model(ModelConfig(width=8), 1)
    torch.manual_seed(3)
    deep = build_model(ModelConfig(width=8, head_plan="score"), 1)
    batch = batch_of(*VARIED)
    with torch.no_grad():
        assert torch.equal(plain.eval().embed(batch), deep.eval().embed(batch))
    assert deep.n_parameters() == plain.n_parameters() + 8 * 8 + 8


def test_what_is_no_plan_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"head_plan, which may also be none: plan 'deep': "):
        ModelConfig(head_plan="deep")


def test_a_configuration_stored_without_one_has_none():
    stored = ModelConfig().to_dict()
    del stored["head_plan"]
    assert ModelConfig.from_dict(stored) == ModelConfig(head_plan="none")

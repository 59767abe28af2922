"""The mlp: a perceptron on descriptors, its hidden layers one or several."""

import pytest
import torch
from torch import nn

from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model
from molscore.nn.registry import block_names, made_of_descriptors
from tests.molecules import batch_of

N, WIDTH = 7, 16


def mlp(**options):
    torch.manual_seed(0)
    return build_model(ModelConfig(block="mlp", width=WIDTH, **options), 2, N).eval()


def batch(*smiles):
    graphs = batch_of(*(smiles or ("CCO", "C", "c1ccccc1")))
    numbers = torch.randn(graphs.n_graphs, N, generator=torch.Generator().manual_seed(1))
    return graphs._replace(descriptors=numbers)


def test_native_is_a_plain_perceptron():
    model, given = mlp(plan="native"), batch()
    (stage,) = model.depth.stages
    layers = [model.family.read, *(b.linear for b in stage.blocks), model.head.hidden]
    plain = nn.Sequential(*(part for x in layers for part in (x, nn.LeakyReLU())), model.head.out)
    assert len(layers) == 6
    assert sum(p.numel() for p in plain.parameters()) == model.n_parameters()
    with torch.no_grad():
        assert torch.equal(model(given), plain(given.descriptors))


def test_score_is_the_recurrence_over_one_layer():
    model, given = mlp(plan="score"), batch()
    (stage,) = model.depth.stages
    (block,) = stage.blocks
    with torch.no_grad():
        h = nn.functional.leaky_relu(model.family.read(given.descriptors))
        for _ in range(4):
            h = 0.5 * h + 0.5 * nn.functional.leaky_relu(block.linear(h))
        wanted = model.head.out(nn.functional.leaky_relu(model.head.hidden(h)))
        torch.testing.assert_close(model(given), wanted)


def test_the_number_of_parameters_is_that_of_the_layers_and_not_of_the_steps():
    square = WIDTH * WIDTH + WIDTH
    ends = (N * WIDTH + WIDTH) + square + (WIDTH * 2 + 2)  # reading, the head's hidden layer, out
    for plan, blocks in (("1x1@0.5", 1), ("score", 1), ("1x9@1/K", 1), ("native", 4)):
        assert mlp(plan=plan).n_parameters() == ends + blocks * square


def test_graphs_are_not_looked_at():
    model = mlp()
    with torch.no_grad():
        first, second = batch("CCO", "C", "c1ccccc1"), batch("[Na+].[Cl-]", "O", "CCCC")
        assert torch.equal(model(first), model(second))


def test_it_needs_descriptors_to_be_built_and_to_run():
    with pytest.raises(ValueError, match="was given none"):
        build_model(ModelConfig(block="mlp"), 1)
    with pytest.raises(ValueError, match="takes descriptors and got none"):
        mlp()(batch_of("C"))


@pytest.mark.parametrize("block", block_names())
def test_descriptors_follow_from_the_block_unless_given(block):
    wanted = "rdkit" if made_of_descriptors(block) else "none"
    assert ModelConfig(block=block).descriptors == wanted
    assert ModelConfig(block=block, descriptors="auto").descriptors == wanted
    assert ModelConfig(block=block, descriptors="rdkit").descriptors == "rdkit"
    stored = ModelConfig(block=block)
    assert ModelConfig.from_dict(stored.to_dict()) == stored


def test_an_mlp_without_descriptors_is_refused():
    with pytest.raises(ConfigError, match="block 'mlp' is made of descriptors"):
        ModelConfig(block="mlp", descriptors="none")


@pytest.mark.parametrize("readout", ["virtual-node", "sum", "mean"])
def test_there_is_nothing_to_read_out(readout):
    config = ModelConfig(block="mlp", readout=readout)
    assert config == ModelConfig(block="mlp")
    model, given = mlp(readout=readout), batch()
    with torch.no_grad():
        h, ctx = model.family.begin(given)
        assert torch.equal(model.embed(given), model.depth(h, ctx))
        rows, owner = model.family.finish(h, ctx, given)
    assert rows is h
    assert owner.tolist() == [0, 1, 2]

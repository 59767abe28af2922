"""What every block family must satisfy under every plan, integrator and readout."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from rdkit import Chem
from safetensors.torch import load, save

from molscore.chem.descriptors import DESCRIPTOR_NAMES, DescriptorScaler, compute_descriptors
from molscore.chem.packed import MolGraph, PackedGraphs
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model
from molscore.nn.registry import block_names
from molscore.score.integrators import STEPS
from tests.molecules import VARIED, batch_of, molecule, pack

PLANS = ("score", "skip05", "native", "residual", "1x3@1/K", "1x2@learned", "1x2@0.5,2x1@0.25")
READOUTS = ("virtual-node", "sum", "mean")


def configurations():
    """Every family with every value of every option, the others at their defaults, in turn."""
    for block in block_names():
        base = ModelConfig(block=block, width=16)
        for k, plan in enumerate(PLANS):
            yield replace(base, plan=plan, readout=READOUTS[k % 3])
        for k, integrator in enumerate(STEPS):
            yield replace(base, integrator=integrator, readout=READOUTS[k % 3])
        for k, head_plan in enumerate(PLANS):
            integrator = list(STEPS)[k % len(STEPS)]
            yield replace(base, head_plan=head_plan, integrator=integrator)
        yield replace(base, readout_steps=1)


def name(config):
    return "-".join(
        map(str, (config.block, config.plan, config.integrator, config.readout, config.head_plan))
    )


CONFIGS = list(configurations())
everywhere = pytest.mark.parametrize("config", CONFIGS, ids=map(name, CONFIGS))
each_block = pytest.mark.parametrize("block", block_names())


def make(config, n_targets=2, seed=0):
    torch.manual_seed(seed)
    n_descriptors = len(DESCRIPTOR_NAMES) if config.descriptors == "rdkit" else 0
    return build_model(config, n_targets, n_descriptors).eval()


@cache
def raw_descriptors(smiles):
    return compute_descriptors([molecule(smiles)])


@cache
def scaler():
    return DescriptorScaler.fit(np.concatenate([raw_descriptors(s) for s in VARIED]))


def described(config, batch, *smiles):
    """Return a batch with the scaled descriptors of its molecules, if the model takes any."""
    if config.descriptors == "none":
        return batch
    scaled = scaler().transform(np.concatenate([raw_descriptors(s) for s in smiles]))
    return batch._replace(descriptors=torch.from_numpy(scaled))


def feed(config, *smiles):
    """Return molecules as a model of this configuration takes them."""
    return described(config, batch_of(*smiles), *smiles)


@torch.no_grad()
def outputs(model, batch):
    return model(batch)


@everywhere
def test_batched_equals_single_and_order_does_not_matter(config):
    model = make(config)
    together = outputs(model, feed(config, *VARIED))
    assert torch.isfinite(together).all()
    for smiles, row in zip(VARIED, together, strict=True):
        torch.testing.assert_close(
            outputs(model, feed(config, smiles))[0], row, rtol=1e-5, atol=1e-5
        )
    backwards = outputs(model, feed(config, *VARIED[::-1])).flip(0)
    torch.testing.assert_close(backwards, together, rtol=1e-5, atol=1e-5)


@everywhere
def test_permuting_the_atoms_changes_nothing(config):
    model = make(config)
    smiles = "CC(=O)Oc1ccccc1C(=O)O"
    packed = pack(smiles)
    graph = MolGraph(packed.atom_codes, packed.bond_atoms, packed.bond_codes)

    def output(graphs):
        batch = GraphBatch.from_arrays(graphs.batch(np.array([0])))
        return outputs(model, described(config, batch, smiles))

    expected = output(packed)
    rng = np.random.default_rng(0)
    for _ in range(3):
        new_place = rng.permutation(len(graph.atom_codes))
        bonds = rng.permutation(len(graph.bond_atoms))
        ends = new_place[graph.bond_atoms[bonds]].astype(np.int32)
        ends[::2] = ends[::2, ::-1]
        atoms = np.empty_like(graph.atom_codes)
        atoms[new_place] = graph.atom_codes
        shuffled = PackedGraphs.pack([MolGraph(atoms, ends, graph.bond_codes[bonds])])
        torch.testing.assert_close(output(shuffled), expected, rtol=1e-5, atol=1e-5)


@everywhere
def test_one_atom_and_no_bond_train_and_predict(config):
    model = make(config).train()
    batch = feed(config, "C", "O", "[Na+]")
    assert batch.bond_codes.shape[0] == 0
    model(batch).pow(2).sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all()
    assert torch.isfinite(outputs(model.eval(), batch)).all()


@everywhere
def test_every_parameter_is_trained(config):
    model = make(config).train()
    model(feed(config, *VARIED)).pow(2).sum().backward()
    without = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


@each_block
def test_rewriting_the_smiles_changes_nothing(block):
    config = ModelConfig(block=block, width=16)
    model = make(config)
    for smiles in VARIED:
        mol = Chem.MolFromSmiles(smiles)
        kekulised = Chem.Mol(mol)
        Chem.Kekulize(kekulised, clearAromaticFlags=True)
        written = {
            *Chem.MolToRandomSmilesVect(mol, 5, randomSeed=1),
            Chem.MolToSmiles(kekulised, kekuleSmiles=True),
            Chem.MolToSmiles(mol, allHsExplicit=True),
            Chem.MolToSmiles(Chem.AddHs(mol)),
        }
        expected = outputs(model, feed(config, smiles))
        for other in written:
            found = outputs(model, feed(config, other))
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=other)


@each_block
def test_a_block_at_dt_one_is_f_and_at_dt_zero_is_nothing(block):
    config = ModelConfig(block=block, width=16, plan="1x1@1")
    model = make(config)
    batch = feed(config, *VARIED)
    with torch.no_grad():
        h, ctx = model.family.begin(batch)
        (stage,) = model.depth.stages
        f = stage.blocks[0]
        prepared = f.prepare(ctx)
        assert f(h, prepared).shape == h.shape
        assert torch.equal(model.depth(h, ctx), f(h, prepared))
        for step in STEPS.values():
            still = step(lambda u: f(u, prepared), h, 0.0)
            assert torch.equal(still, h)


@each_block
@pytest.mark.parametrize("field", ["plan", "head_plan"])
def test_parameters_do_not_depend_on_the_number_of_steps(block, field):
    def count(plan):
        return make(ModelConfig(block=block, width=16, **{field: plan})).n_parameters()

    assert count("1x2@0.5") == count("1x7@0.5")
    assert count("native") == count("skip05") == count("residual") > count("score")


@everywhere
def test_saved_and_loaded_weights_give_the_same_bits(config):
    model = make(config)
    twin = make(config, seed=1)
    batch = feed(config, *VARIED)
    assert not torch.equal(outputs(model, batch), outputs(twin, batch))
    twin.load_state_dict(load(save(dict(model.state_dict()))))
    assert torch.equal(outputs(model, batch), outputs(twin, batch))


@everywhere
def test_deep_plans_stay_finite_on_large_molecules(config):
    model = make(config)
    assert torch.isfinite(outputs(model, feed(config, "C" * 400, "c1ccccc1" * 40))).all()


@each_block
@pytest.mark.parametrize("readout", READOUTS)
def test_a_molecule_without_its_neighbours_in_the_batch(block, readout):
    # The number of molecules is passed in: the last ones may own few rows, yet none is lost.
    config = ModelConfig(block=block, width=16, readout=readout)
    model = make(config)
    assert outputs(model, feed(config, "c1ccccc1", "C")).shape == (2, 2)


@each_block
def test_descriptors_reach_the_head(block):
    torch.manual_seed(0)
    model = build_model(ModelConfig(block=block, width=16, descriptors="rdkit"), 1, 5).eval()
    batch = batch_of("CCO", "CCN")
    low = outputs(model, batch._replace(descriptors=torch.zeros(2, 5)))
    high = outputs(model, batch._replace(descriptors=torch.ones(2, 5)))
    assert not torch.equal(low, high)
    with pytest.raises(ValueError, match="descriptors"):
        outputs(model, batch)


def test_configurations_cover_every_plan_integrator_and_readout_of_every_block():
    for block, (field, values) in itertools.product(
        block_names(),
        [
            *(("plan", PLANS), ("head_plan", ("none", *PLANS))),
            *(("integrator", tuple(STEPS)), ("readout", READOUTS)),
        ],
    ):
        # What a block settles by itself (the readout of an mlp) has one value for all asked.
        asked = {getattr(ModelConfig(block=block, **{field: value}), field) for value in values}
        assert {getattr(c, field) for c in CONFIGS if c.block == block} >= asked

"""AttentiveFP and the virtual node against PyTorch Geometric's own."""

import warnings

import pytest
import torch

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES
from molscore.nn.config import ModelConfig
from molscore.nn.model import build_model
from tests.molecules import batch_of

WIDTH, LAYERS, STEPS = 16, 4, 3


def one_hot(codes, features):
    parts = [torch.nn.functional.one_hot(codes[:, i], len(f)) for i, f in enumerate(features)]
    return torch.cat(parts, dim=1).float()


@pytest.fixture(scope="module")
def oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn.models import AttentiveFP
    torch.manual_seed(0)
    return AttentiveFP(
        sum(map(len, ATOM_FEATURES)),
        WIDTH,
        2,
        edge_dim=sum(map(len, BOND_FEATURES)),
        num_layers=LAYERS,
        num_timesteps=STEPS,
        dropout=0.0,
    ).eval()


@torch.no_grad()
def copy_weights(theirs, model):
    ours = model.family
    ours.atom_in.weight.copy_(theirs.lin1.weight.T)
    ours.atom_bias.copy_(theirs.lin1.bias)
    gate = theirs.gate_conv
    ours.neighbour.weight.copy_(gate.lin1.weight[:, :WIDTH])
    ours.bond_in.weight.copy_(gate.lin1.weight[:, WIDTH:].T)
    ours.score_bond.weight.copy_(gate.att_l)
    ours.score_atom.weight.copy_(gate.att_r)
    ours.project.weight.copy_(gate.lin2.weight)
    ours.bias.copy_(gate.bias)
    ours.gru.load_state_dict(theirs.gru.state_dict())
    blocks = [b for stage in model.depth.stages for b in stage.blocks]
    for block, conv, gru in zip(blocks, theirs.atom_convs, theirs.atom_grus, strict=True):
        block.project.weight.copy_(conv.lin.weight)
        block.score.weight.copy_(torch.cat([conv.att_src[0], conv.att_dst[0]]))
        block.bias.copy_(conv.bias)
        block.gru.load_state_dict(gru.state_dict())
    node, conv = model.readout, theirs.mol_conv
    node.project.weight.copy_(conv.lin.weight)
    node.score_row.weight.copy_(conv.att_src[0])
    node.score_node.weight.copy_(conv.att_dst[0])
    node.bias.copy_(conv.bias)
    node.gru.load_state_dict(theirs.mol_gru.state_dict())


def test_stacked_attentivefp_with_virtual_node_is_that_of_pyg(oracle):
    config = ModelConfig(
        block="attentivefp", plan=f"{LAYERS - 1}x1@1", width=WIDTH, readout_steps=STEPS
    )
    model = build_model(config, n_targets=2).eval()
    copy_weights(oracle, model)
    batch = batch_of("CCO", "C", "c1ccccc1C(=O)[O-].[Na+]", "O", "CC(C)(C)c1cc[nH]c1")
    with torch.no_grad():
        theirs = oracle(
            one_hot(batch.atom_codes, ATOM_FEATURES),
            batch.edge_index,
            one_hot(batch.bond_codes, BOND_FEATURES),
            batch.graph_id,
        )
        ours = oracle.lin2(model.embed(batch))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_dmpnn_step_is_the_sum_over_bonds_without_the_reverse():
    model = build_model(ModelConfig(plan="1x1@1", width=8), n_targets=1).eval()
    batch = batch_of("CC(C)(F)C1CC1", "CO")
    with torch.no_grad():
        h, ctx = model.family.begin(batch)
        (block,) = model.depth.stages[0].blocks
        ours = block(h, block.prepare(ctx))
        to_export = block(h, block.prepare(ctx._replace(bags=None)))
        torch.testing.assert_close(ours, to_export)
        source, target = batch.edge_index.tolist()
        for e in range(len(source)):
            reverse = e ^ 1
            assert (source[reverse], target[reverse]) == (target[e], source[e])
            into = [k for k in range(len(source)) if target[k] == source[e] and k != reverse]
            message = h[into].sum(dim=0)
            expected = torch.nn.functional.leaky_relu(ctx.h0[e] + block.linear(message), 0.01)
            torch.testing.assert_close(ours[e], expected, rtol=1e-4, atol=1e-5)

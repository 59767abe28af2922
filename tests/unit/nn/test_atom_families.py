"""The families built on PyTorch Geometric's convolutions against plain stacks of them."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import elu, leaky_relu

from molscore.nn.config import ModelConfig
from molscore.nn.families.atoms import building_pyg, n_heads
from molscore.nn.model import build_model
from tests.molecules import VARIED, batch_of

WIDTH, HEADS, LAYERS = 16, 4, 4
ATTENTION = {"out_channels": WIDTH // HEADS, "heads": HEADS, "edge_dim": WIDTH}
BLOCKS = ("gcn", "gat", "gatv2", "gine", "mpnn", "transformer")


@pytest.fixture(scope="module")
def pyg():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch_geometric.nn
    return torch_geometric.nn


class Stack:
    """A native stack of ours, and what a stack of PyG's layers takes."""

    def __init__(self, block):
        torch.manual_seed(0)
        config = ModelConfig(block=block, plan=f"{LAYERS}x1@1", width=WIDTH)
        self.model = build_model(config, n_targets=1).eval()
        with torch.no_grad():
            for p in self.model.parameters():
                p.add_(0.1 * torch.randn_like(p))
        self.blocks = [b for stage in self.model.depth.stages for b in stage.blocks]
        self.batch = batch_of(*VARIED)
        self.edge_index = self.batch.edge_index
        self.family = self.model.family
        self.bonds = self.family.bond_in(self.batch.bond_codes)
        self.h0, self.ctx = self.family.begin(self.batch)

    def assert_equals(self, layer):
        """Compare with h <- layer(block, h) from the same first state."""
        h = self.h0
        for block in self.blocks:
            h = layer(block, h)
        ours = self.model.depth(self.h0, self.ctx)
        assert h.abs().max() > 0.1
        torch.testing.assert_close(ours, h, rtol=1e-5, atol=1e-5)


def edge_weights(block):
    """The weights of our convolution as PyG names them, the projection of bonds included."""
    return block.conv.state_dict() | {"lin_edge.weight": block.edge.weight}


@torch.no_grad()
def test_gcn_is_a_stack_of_gcnconv(pyg):
    stack = Stack("gcn")
    theirs = pyg.GCNConv(WIDTH, WIDTH)

    def layer(block, h):
        theirs.load_state_dict(block.conv.state_dict())
        return leaky_relu(theirs(h, stack.edge_index), 0.01)

    stack.assert_equals(layer)


@torch.no_grad()
def test_gcn_starts_from_an_atom_and_the_sum_of_its_bonds():
    stack = Stack("gcn")
    x = stack.family.atom_in(stack.batch.atom_codes)
    for e, v in enumerate(stack.edge_index[1].tolist()):
        x[v] += stack.bonds[e]
    torch.testing.assert_close(stack.h0, leaky_relu(x, 0.01), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("block", "conv"), [("gat", "GATConv"), ("gatv2", "GATv2Conv")])
@torch.no_grad()
def test_attention_is_a_stack_of_pyg_layers_with_self_loops(pyg, block, conv):
    stack = Stack(block)
    theirs = getattr(pyg, conv)(WIDTH, **ATTENTION, add_self_loops=True, fill_value="mean")

    def layer(block, h):
        theirs.load_state_dict(edge_weights(block))
        return elu(theirs(h, stack.edge_index, stack.bonds))

    stack.assert_equals(layer)


@torch.no_grad()
def test_gine_is_a_stack_of_gineconv(pyg):
    stack = Stack("gine")
    perceptron = nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH), nn.LeakyReLU(0.01), nn.Linear(2 * WIDTH, WIDTH)
    )
    theirs = pyg.GINEConv(perceptron, train_eps=True, edge_dim=WIDTH)

    def layer(block, h):
        edge = {"lin.weight": block.edge.weight, "lin.bias": block.edge.bias}
        theirs.load_state_dict(block.conv.state_dict() | edge)
        return leaky_relu(theirs(h, stack.edge_index, stack.bonds), 0.01)

    stack.assert_equals(layer)


@torch.no_grad()
def test_mpnn_is_a_stack_of_nnconv_and_gru(pyg):
    stack = Stack("mpnn")
    network = nn.Linear(stack.bonds.shape[1], WIDTH * WIDTH)
    theirs = pyg.NNConv(WIDTH, WIDTH, network, root_weight=False)

    def layer(block, h):
        network.load_state_dict(block.edge.state_dict())
        theirs.bias.copy_(block.conv.bias)
        m = theirs(block.down(h), stack.edge_index, leaky_relu(stack.bonds, 0.01))
        return block.gru(m, h)

    stack.assert_equals(layer)


@torch.no_grad()
def test_transformer_is_a_pre_norm_stack_of_transformerconv(pyg):
    stack = Stack("transformer")
    theirs = pyg.TransformerConv(WIDTH, **ATTENTION, root_weight=False, bias=False)

    def layer(block, h):
        missing, unexpected = theirs.load_state_dict(edge_weights(block), strict=False)
        assert (missing, unexpected) == (["lin_skip.weight"], [])
        y = h + block.out(theirs(block.norm1(h), stack.edge_index, stack.bonds))
        first, act, second = block.perceptron
        return y + second(act(first(block.norm2(y))))

    stack.assert_equals(layer)


@pytest.mark.parametrize("block", BLOCKS)
@torch.no_grad()
def test_bonds_reach_the_prediction(block):
    model = build_model(ModelConfig(block=block, width=WIDTH), n_targets=1).eval()
    batch = batch_of("CCO", "C")
    other = batch._replace(bond_codes=(batch.bond_codes == 0).long())
    changed = (model(batch) != model(other)).flatten().tolist()
    assert changed == [True, False]


@pytest.mark.parametrize("block", [b for b in BLOCKS if b != "gcn"])
@torch.no_grad()
def test_what_bonds_become_is_computed_once_per_pass(block):
    model = build_model(ModelConfig(block=block, plan="1x5@0.5", width=WIDTH), n_targets=1)
    calls = []
    ((edge,),) = [[b.edge for b in stage.blocks] for stage in model.depth.stages]
    edge.register_forward_hook(lambda *_: calls.append(1))
    model.eval()(batch_of("CCO"))
    assert calls == [1]


@pytest.mark.parametrize(("width", "heads"), [(4, 4), (128, 4), (6, 2), (4094, 2), (5, 1)])
def test_heads_divide_the_width(width, heads):
    assert n_heads(width) == heads


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("width", [4, 5, 6])
@torch.no_grad()
def test_any_width_will_do(block, width):
    model = build_model(ModelConfig(block=block, width=width), n_targets=1).eval()
    assert torch.isfinite(model(batch_of(*VARIED))).all()


def test_building_leaves_no_file_behind():
    before = tempfile.tempdir
    with building_pyg(), tempfile.NamedTemporaryFile(delete=False) as file:
        assert Path(file.name).exists()
    assert not Path(file.name).exists()
    assert tempfile.tempdir == before


@pytest.mark.parametrize(("block", "imported"), [("dmpnn", False), ("gcn", True)])
def test_pyg_is_imported_by_the_blocks_that_use_it_alone(tmp_path, block, imported):
    code = (
        "import sys\n"
        "from molscore.nn.config import ModelConfig\n"
        "from molscore.nn.model import build_model\n"
        f"build_model(ModelConfig(block={block!r}), 1)\n"
        "print('torch_geometric' in sys.modules)\n"
    )
    environment = {"TMPDIR": str(tmp_path)} if sys.platform != "win32" else {}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.stdout.strip(), done.stderr) == (str(imported), "")
    assert list(tmp_path.iterdir()) == []

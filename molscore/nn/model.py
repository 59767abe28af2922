"""The model: family -> depth -> readout -> head."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from molscore.nn.activation import SLOPE
from molscore.nn.batch import GraphBatch
from molscore.nn.config import ModelConfig
from molscore.nn.dense import DenseBlock
from molscore.nn.encoder import CodeEncoder
from molscore.nn.families.base import Family
from molscore.nn.readout import READOUTS, RowReadout
from molscore.nn.registry import family_class, made_of_descriptors
from molscore.score.depth import Depth
from molscore.score.plan import DepthPlan


class Head(nn.Module):
    """From a molecule's vector, and its descriptors, to the targets.

        z0 = act(U m + D d)
        z  = depth(z0)
        y  = shift + scale * (V z)

    `depth` is the head plan over `DenseBlock`, with the integrator and dropout of the trunk; its
    1/K counts the applications of the head alone. Without a head plan z is z0.

    `shift` and `scale` undo the standardisation of the training targets, so the output is in
    the (transformed) unit of the target; for a class they are 0 and 1 and y is a logit.

    Shape:
        m [n_graphs, width], d [n_graphs, n_descriptors] or None -> [n_graphs, n_targets]
    """

    def __init__(self, config: ModelConfig, n_targets: int, n_descriptors: int) -> None:
        super().__init__()
        width = config.width
        self.hidden = nn.Linear(width, width)
        self.descriptors = nn.Linear(n_descriptors, width, bias=False) if n_descriptors else None
        self.depth = _head_depth(config)
        self.out = nn.Linear(width, n_targets)
        self.register_buffer("shift", torch.zeros(n_targets))
        self.register_buffer("scale", torch.ones(n_targets))
        self.shift: Tensor
        self.scale: Tensor

    def standardised(self, m: Tensor, d: Tensor | None) -> Tensor:
        """Return the targets in standardised units: what the loss is taken in."""
        z = self.hidden(m)
        if self.descriptors is not None:
            if d is None:
                raise ValueError("this model takes descriptors and got none")
            z = z + self.descriptors(d)
        z = functional.leaky_relu(z, SLOPE)
        if self.depth is not None:
            z = self.depth(z, None)
        return cast(Tensor, self.out(z))

    def forward(self, m: Tensor, d: Tensor | None) -> Tensor:
        """Return the targets in their own units."""
        return self.shift + self.scale * self.standardised(m, d)


def _head_depth(config: ModelConfig) -> Depth | None:
    if config.head_plan == "none":
        return None
    return Depth(
        DepthPlan.parse(config.head_plan),
        lambda: DenseBlock(config.width),
        integrator=config.integrator,
        dropout=config.dropout,
    )


class PropertyModel(nn.Module):
    """One expert: molecular graphs in, targets out.

        h0, ctx = family.begin(g)
        h = depth(h0, ctx)
        rows, owner = family.finish(h, ctx, g)
        y = head(readout(rows, owner), descriptors)

    A family made of descriptors takes them in `begin`, has no readout, and its head gets none.

    Args:
        config: the architecture.
        n_targets: number of outputs.
        n_descriptors: number of molecule-level descriptors the model takes, 0 for none.

    Shape:
        GraphBatch of n_graphs molecules -> float32 [n_graphs, n_targets]; regression targets in
        their (transformed) unit, classes as logits.
    """

    def __init__(self, config: ModelConfig, *, n_targets: int, n_descriptors: int = 0) -> None:
        super().__init__()
        self.config = config
        self.n_descriptors = n_descriptors
        family, of_descriptors = family_class(config.block), made_of_descriptors(config.block)
        self.family: Family = family(config, n_descriptors) if of_descriptors else family(config)
        self.depth = Depth(
            DepthPlan.parse(config.plan),
            self.family.make_block,
            integrator=config.integrator,
            dropout=config.dropout,
        )
        self.readout = RowReadout() if of_descriptors else READOUTS[config.readout](config)
        self.head = Head(config, n_targets, 0 if of_descriptors else n_descriptors)

    def embed(self, batch: GraphBatch) -> Tensor:
        """Return one vector a molecule, [n_graphs, width]."""
        h, ctx = self.family.begin(batch)
        h = self.depth(h, ctx)
        rows, owner = self.family.finish(h, ctx, batch)
        return cast(Tensor, self.readout(rows, owner, batch.n_graphs))

    def standardised(self, batch: GraphBatch) -> Tensor:
        """Return the targets in standardised units, [n_graphs, n_targets]."""
        return self.head.standardised(self.embed(batch), batch.descriptors)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return the targets in their own units, [n_graphs, n_targets]."""
        return cast(Tensor, self.head(self.embed(batch), batch.descriptors))

    def forget_unseen(self, atom_codes: Tensor, bond_codes: Tensor) -> None:
        """Zero the embeddings of codes that are not in the training data."""
        for name, module in self.family.named_modules():
            if isinstance(module, CodeEncoder):
                module.forget_unseen(bond_codes if "bond" in name else atom_codes)

    def n_parameters(self) -> int:
        """Return the number of trained numbers."""
        return sum(p.numel() for p in self.parameters())


def build_model(config: ModelConfig, n_targets: int, n_descriptors: int = 0) -> PropertyModel:
    """Return a freshly initialised expert."""
    return PropertyModel(config, n_targets=n_targets, n_descriptors=n_descriptors)

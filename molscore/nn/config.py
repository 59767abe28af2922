"""What a model is made of. Read by the command line and stored in every bundle."""

from dataclasses import dataclass, fields
from typing import Final, Literal

from molscore.config import Config
from molscore.errors import ConfigError
from molscore.nn.registry import block_names, made_of_descriptors
from molscore.score.plan import DepthPlan

Integrator = Literal["euler", "heun", "midpoint", "rk4"]
Readout = Literal["virtual-node", "sum", "mean"]
Descriptors = Literal["auto", "none", "rdkit"]
ExpertKind = Literal["graph", "trees"]

TREES: Final = "catboost"
"""The block that is no network: gradient-boosted trees on the RDKit descriptors."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Config):
    """The architecture of one expert.

    Attributes:
        block: block family, see `molscore.nn.registry`.
        plan: depth plan, see `molscore.score.plan`.
        integrator: how a contractive step is taken.
        readout: how a molecule is read off its rows. A molecule of the mlp has one row, which
            every readout returns as it is: there the field always becomes `sum`.
        readout_steps: attention steps of the virtual node.
        width: width of every hidden state.
        dropout: probability of state dropout after each update.
        descriptors: molecule-level descriptors the head also takes. The mlp and the trees are made
            of them instead, so there `auto` becomes `rdkit` and `none` is refused; elsewhere
            `auto` becomes `none`. A configuration never holds `auto` once it is built.
        head_plan: depth plan of the head's hidden layers, run with the integrator and dropout
            of the model; `none` is one hidden layer.
        blend: beside every network, train trees on the RDKit descriptors, and average the two.
    """

    block: str = "dmpnn"
    plan: str = "score"
    integrator: Integrator = "euler"
    readout: Readout = "virtual-node"
    readout_steps: int = 2
    width: int = 128
    dropout: float = 0.1
    descriptors: Descriptors = "auto"
    head_plan: str = "none"
    blend: bool = False

    def __post_init__(self) -> None:
        known_blocks = (*block_names(), TREES)
        if self.block not in known_blocks:
            raise ConfigError(
                f"unknown block {self.block!r}; expected one of {', '.join(known_blocks)}"
            )
        DepthPlan.parse(self.plan)
        if self.head_plan != "none":
            try:
                DepthPlan.parse(self.head_plan)
            except ConfigError as error:
                raise ConfigError(f"head_plan, which may also be none: {error}") from None
        for name, known in (
            ("integrator", ("euler", "heun", "midpoint", "rk4")),
            ("readout", ("virtual-node", "sum", "mean")),
            ("descriptors", ("auto", "none", "rdkit")),
        ):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"unknown {name} {value!r}; expected one of {', '.join(known)}")
        if not 4 <= self.width <= 4096:
            raise ConfigError(f"width must be between 4 and 4096, got {self.width}")
        if not 1 <= self.readout_steps <= 16:
            raise ConfigError(f"readout_steps must be between 1 and 16, got {self.readout_steps}")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.block == TREES:
            self._refuse_options_of_networks()
        self._settle()

    def _settle(self) -> None:
        """Replace what the block decides, so that equal models have equal configurations."""
        if self.of_descriptors and self.descriptors == "none":
            raise ConfigError(
                f"block {self.block!r} is made of descriptors and cannot do without; use "
                "descriptors rdkit (or auto), or another block"
            )
        if self.descriptors == "auto":
            object.__setattr__(self, "descriptors", "rdkit" if self.of_descriptors else "none")
        if made_of_descriptors(self.block):
            object.__setattr__(self, "readout", "sum")

    def _refuse_options_of_networks(self) -> None:
        """Trees have none of a network's options: one that was set would be silently ignored."""
        for f in fields(self):
            if f.name not in ("block", "descriptors") and getattr(self, f.name) != f.default:
                raise ConfigError(
                    f"{f.name} {getattr(self, f.name)!r} belongs to a network: leave it out with "
                    f"block {TREES!r}"
                )

    @property
    def of_descriptors(self) -> bool:
        """Whether descriptors alone are read, and no graph (a blend's trees apart)."""
        return self.block == TREES or made_of_descriptors(self.block)

    @property
    def kinds(self) -> tuple[ExpertKind, ...]:
        """What is trained for each fold and repeat."""
        if self.block == TREES:
            return ("trees",)
        return ("graph", "trees") if self.blend else ("graph",)

    @property
    def has_trees(self) -> bool:
        """Whether trees have a part in a prediction."""
        return "trees" in self.kinds

    @property
    def takes_descriptors(self) -> bool:
        """Whether a prediction needs the RDKit descriptors."""
        return self.has_trees or self.descriptors == "rdkit"

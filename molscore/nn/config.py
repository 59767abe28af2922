"""What a model is made of. Read by the command line and stored in every bundle."""

from dataclasses import dataclass
from typing import Literal

from molscore.config import Config
from molscore.errors import ConfigError
from molscore.nn.registry import block_names
from molscore.score.plan import DepthPlan

Integrator = Literal["euler", "heun", "midpoint", "rk4"]
Readout = Literal["virtual-node", "sum", "mean"]
Descriptors = Literal["none", "rdkit"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Config):
    """The architecture of one expert.

    Attributes:
        block: block family, see `molscore.nn.registry`.
        plan: depth plan, see `molscore.score.plan`.
        integrator: how a contractive step is taken.
        readout: how a molecule is read off its rows.
        readout_steps: attention steps of the virtual node.
        width: width of every hidden state.
        dropout: probability of state dropout after each update.
        descriptors: molecule-level descriptors the head also takes.
    """

    block: str = "dmpnn"
    plan: str = "score"
    integrator: Integrator = "euler"
    readout: Readout = "virtual-node"
    readout_steps: int = 2
    width: int = 128
    dropout: float = 0.1
    descriptors: Descriptors = "none"

    def __post_init__(self) -> None:
        if self.block not in block_names():
            raise ConfigError(
                f"unknown block {self.block!r}; expected one of {', '.join(block_names())}"
            )
        DepthPlan.parse(self.plan)
        for name, known in (
            ("integrator", ("euler", "heun", "midpoint", "rk4")),
            ("readout", ("virtual-node", "sum", "mean")),
            ("descriptors", ("none", "rdkit")),
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

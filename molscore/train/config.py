"""How experts are trained. Read by the command line and stored in every bundle."""

from dataclasses import dataclass
from typing import Any, Final

from molscore.config import Config
from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig

OF_NETWORKS: Final = (
    *("epochs", "batch_size", "learning_rate", "warmup", "weight_decay", "clip"),
    "freeze",
)
OF_TREES: Final = ("iterations",)
"""Fields that mean nothing without a network, and without trees."""

FINE_TUNING: Final[dict[str, Any]] = {"epochs": 30, "learning_rate": 3e-4}
"""What holds in place of the defaults where experts start from another model. Chosen on Huuskonen's
solubilities, from a model of AqSolDB without them."""

CLASSES: Final[dict[str, Any]] = {"epochs": 15}
"""What holds in place of the defaults where every target is a class: a network that trains as long
as on numbers is far too sure of its classes, and ranks molecules worse. Chosen on 2,000 rows of
B3DB that the benchmarks do not hold."""


def settings(*, starts: bool, classes: bool) -> dict[str, Any]:
    """Return what holds in place of the defaults of the schedule.

    Args:
        starts: whether experts start from another model.
        classes: whether every target is a class.
    """
    return FINE_TUNING if starts else CLASSES if classes else {}


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """The training schedule and the cross-validation.

    Nothing here is picked by a score on held-out data: the number of epochs and the schedule
    are fixed before training starts.

    Attributes:
        epochs: passes over the training part; `settings` says when the default is another one.
        batch_size: molecules a step.
        learning_rate: the top of the schedule.
        warmup: share of the steps in which the rate climbs to its top, along a half cosine; it
            then falls to zero along another.
        weight_decay: AdamW's, on weight matrices alone.
        clip: largest allowed norm of the gradient.
        iterations: trees a target, where there are trees.
        folds: K. Each expert is blind to one fold; 1 trains one expert on all rows and gives no
            cross-validation.
        repeats: R experts a fold, which differ in their seed.
        split: random, scaffold, group:COLUMN or time:COLUMN.
        seed: the one seed everything is drawn from.
        freeze: of an expert that starts from another model, train the head alone.
        threads: torch threads an expert uses. Stored, and never taken from the machine, so that
            the same seed gives the same model.
    """

    epochs: int = 60
    batch_size: int = 32
    learning_rate: float = 2e-3
    warmup: float = 0.3
    weight_decay: float = 0.01
    clip: float = 5.0
    iterations: int = 1000
    folds: int = 5
    repeats: int = 1
    split: str = "random"
    seed: int = 0
    freeze: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("epochs", 1, 100_000),
            ("batch_size", 1, 1_000_000),
            ("iterations", 1, 100_000),
            ("folds", 1, 100),
            ("repeats", 1, 1000),
            ("seed", 0, 2**63 - 1),
            ("threads", 1, 1024),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} must be between {low} and {high}, got {value}")
        for name, top in (("learning_rate", 10.0), ("weight_decay", 10.0), ("clip", 1e6)):
            value = getattr(self, name)
            if not 0.0 <= value <= top:
                raise ConfigError(f"{name} must be between 0 and {top:g}, got {value}")
        if self.learning_rate == 0.0 or self.clip == 0.0:
            raise ConfigError("learning_rate and clip must be above 0")
        if not 0.0 <= self.warmup <= 1.0:
            raise ConfigError(f"warmup must be between 0 and 1, got {self.warmup}")
        kind, _, column = self.split.partition(":")
        if self.split not in ("random", "scaffold", "file") and not (
            kind in ("group", "time") and column
        ):
            raise ConfigError(
                f"unknown split {self.split!r}; expected random, scaffold, group:COLUMN or "
                "time:COLUMN (or --folds-file)"
            )

    @property
    def n_experts(self) -> int:
        """K x R."""
        return self.folds * self.repeats

    def used_by(self, model: ModelConfig) -> dict[str, Any]:
        """Return the settings that mean something for `model`, as JSON-ready types.

        Raises:
            ConfigError: when one that does not was set: it would be silently ignored.
        """
        idle = set(OF_NETWORKS if "graph" not in model.kinds else ())
        idle |= set(OF_TREES if not model.has_trees else ())
        for name in idle:
            if getattr(self, name) != self.default(name):
                other = "a network" if name in OF_NETWORKS else "trees (block catboost, or blend)"
                raise ConfigError(
                    f"{name} {getattr(self, name)} belongs to {other}: leave it out with "
                    f"block {model.block!r}"
                )
        return {name: value for name, value in self.to_dict().items() if name not in idle}

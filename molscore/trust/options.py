"""What to say beside a prediction. Read by the command line; imports no chemistry."""

from dataclasses import dataclass
from typing import Final

from molscore.config import Config
from molscore.errors import ConfigError

MAX_NEIGHBOURS: Final = 100


@dataclass(frozen=True, kw_only=True)
class TrustOptions(Config):
    """What to say beside a prediction, where the model carries what that takes.

    Attributes:
        interval: the share of measured values that intervals are to hold; 0 for no intervals.
        domain: say how near the training set is, and what a molecule has that it has not.
        neighbours: nearest training structures to show, with their measured values.
    """

    interval: float = 0.9
    domain: bool = True
    neighbours: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.interval < 1.0:
            raise ConfigError(
                f"interval must be a share from 0 (none) to below 1, such as 0.9; "
                f"got {self.interval:g}"
            )
        if not 0 <= self.neighbours <= MAX_NEIGHBOURS:
            raise ConfigError(
                f"neighbours must be between 0 and {MAX_NEIGHBOURS}, got {self.neighbours}"
            )


PLAIN: Final = TrustOptions(interval=0.0, domain=False)
"""Predictions alone."""

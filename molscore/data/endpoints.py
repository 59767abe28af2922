"""One property to learn: its name, kind, unit and transform."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from molscore.config import Config
from molscore.errors import ConfigError

Values = NDArray[np.float64]
TargetKind = Literal["regression", "classification"]
Transform = Literal["none", "log10", "ln", "log1p"]


@dataclass(frozen=True, kw_only=True)
class Target(Config):
    """One property to learn.

    Attributes:
        name: column name, without blanks around it.
        kind: `regression`, or `classification` between two classes.
        unit: of the values in the table, for people to read.
        transform: what a model learns of a value y, and predictions undo: `none` y,
            `log10` log10(y), `ln` ln(y), `log1p` ln(1 + y).
        note: endpoint note ("water solubility, pH not controlled").
        classes: for classification, what 0 and 1 are called in the table.
    """

    name: str
    kind: TargetKind = "regression"
    unit: str = ""
    transform: Transform = "none"
    note: str = ""
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "classification":
            if self.transform != "none":
                raise ConfigError(
                    f"target {self.name!r}: a classification target takes no transform, "
                    f"got {self.transform!r}"
                )
            if not self.classes:
                object.__setattr__(self, "classes", ("0", "1"))
            if len(self.classes) != 2:
                raise ConfigError(f"target {self.name!r}: two classes are needed")
        elif self.classes:
            raise ConfigError(f"target {self.name!r}: a regression target has no classes")

    def forward(self, values: Values) -> Values:
        """Take values in table units to what a model learns; NaN where that is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            result = _FORWARD[self.transform](np.asarray(values, dtype=np.float64))
        return np.where(np.isfinite(result), result, np.nan)

    def inverse(self, values: Values) -> Values:
        """Undo `forward`."""
        with np.errstate(over="ignore"):
            return np.asarray(_INVERSE[self.transform](np.asarray(values, dtype=np.float64)))


_FORWARD: Final[dict[str, Any]] = {
    "none": np.array,
    "log10": np.log10,
    "ln": np.log,
    "log1p": np.log1p,
}
_INVERSE: Final[dict[str, Any]] = {
    "none": np.array,
    "log10": lambda t: np.power(10.0, t),
    "ln": np.exp,
    "log1p": np.expm1,
}

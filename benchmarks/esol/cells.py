"""What the benchmark trains: cells, and the tables they belong to.

A cell is one model trained once: a data set, an architecture, a seed and the fold that is held
out. A table is a list of architectures to compare; tables share cells.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from molscore.nn.config import ModelConfig
from molscore.score.plan import PLAN_NAMES

FOLDS: Final = 5
PLANS: Final = ("score", "native", "skip05", "residual")
GRAPH_BLOCKS: Final = (
    *("dmpnn", "attentivefp", "gcn", "gat"),
    *("gatv2", "gine", "mpnn", "transformer"),
)
INDEPENDENT: Final = ("freesolv", "lipophilicity", "aqsoldb", "melting", "b3db")


@dataclass(frozen=True)
class Cell:
    """One training.

    Attributes:
        dataset: name of the data set.
        model: the architecture.
        seed: of the run; with the fold it decides every random number.
        fold: held out.
    """

    dataset: str
    model: ModelConfig
    seed: int
    fold: int

    @property
    def place(self) -> tuple[str, str, int, int]:
        """What its line in the results begins with."""
        return self.dataset, label(self.model), self.seed, self.fold

    @property
    def key(self) -> str:
        """A readable name that says all that decides the result."""
        return f"{self.dataset} {label(self.model)} seed={self.seed} fold={self.fold}"


def label(model: ModelConfig) -> str:
    """Name an architecture by its block and what differs from the defaults."""
    default = ModelConfig(block=model.block)
    differ = [
        f"{f.name}={getattr(model, f.name)}"
        for f in dataclasses.fields(model)
        if f.name not in ("block", "plan") and getattr(model, f.name) != getattr(default, f.name)
    ]
    if model.block == "catboost":
        return model.block
    return " ".join([model.block, plan_name(model.plan), *differ])


def plan_name(plan: str) -> str:
    """Return the short name of a plan that has one, so that its cells are trained once."""
    return next((name for name, text in PLAN_NAMES.items() if text == plan), plan)


@dataclass(frozen=True)
class Table:
    """Architectures to compare on one data set.

    Attributes:
        name: of the files it is written to.
        title: what it shows.
        models: architectures, in the order of the table.
        seeds: how many seeds each is trained with.
        paper: figures of arXiv 2603.10544 by row label, where it has one.
        dataset: name of the data set.
        others: rows that `run.py` does not train.
        against: what each row is compared with; `native` is the stack of the same family.
    """

    name: str
    title: str
    models: tuple[ModelConfig, ...]
    seeds: int = 1
    paper: dict[str, str] = field(default_factory=dict)
    dataset: str = "esol"
    others: tuple[str, ...] = ()
    against: tuple[str, ...] = ("native",)

    @property
    def rows(self) -> list[str]:
        """The labels of all rows."""
        return [*map(label, self.models), *self.others]

    def cells(self) -> Iterator[Cell]:
        """Yield every training the table needs, whole seeds first."""
        for seed in range(self.seeds):
            for model in self.models:
                for fold in range(FOLDS):
                    yield Cell(self.dataset, model, seed, fold)


CATBOOST: Final = ModelConfig(block="catboost")
CHEMPROP: Final = "chemprop"
"""The row of `peers.py`."""


def _each(block: str, *plans: str, **options: object) -> tuple[ModelConfig, ...]:
    return tuple(ModelConfig(block=block, plan=plan, **options) for plan in plans)  # type: ignore[arg-type]


TABLES: Final = (
    Table(
        "default",
        "The default, its native stack and the paper's best, three seeds",
        (*_each("dmpnn", "score", "skip05", "native", "residual"), CATBOOST),
        seeds=3,
        paper={"dmpnn skip05": "0.533 +- 0.04", "catboost": "0.563"},
        others=(CHEMPROP,),
        against=("native", "catboost", CHEMPROP),
    ),
    Table(
        "leaderboard",
        "All graph families under four depth plans, virtual-node pooling",
        (*(ModelConfig(block=b, plan=plan) for plan in PLANS for b in GRAPH_BLOCKS), CATBOOST),
        paper={"dmpnn skip05": "0.533 +- 0.04", "gcn score": "0.562", "catboost": "0.563"},
        others=(CHEMPROP,),
    ),
    Table(
        "integrators",
        "Integrators of dh/dt = F(h) - h, SCORE-DMPNN",
        tuple(ModelConfig(integrator=i) for i in ("euler", "heun", "midpoint", "rk4")),
        paper={"dmpnn score integrator=rk4": "a shade better than Euler at four times the cost"},
    ),
    Table(
        "dt",
        "The step dt, SCORE-DMPNN",
        _each("dmpnn", *(f"1x4@{dt}" for dt in ("0.25", "0.5", "0.75", "1", "learned"))),
    ),
    Table(
        "depth",
        "Applications K, native stack against SCORE with dt = 0.5 and 1/K",
        tuple(
            m for k in range(2, 8) for m in _each("dmpnn", f"{k}x1@1", f"1x{k}@0.5", f"1x{k}@1/K")
        ),
        paper={"SCORE against native, K = 2 to 7": "about 7.6 % better"},
    ),
    Table(
        "readout",
        "Virtual-node, sum and mean pooling, with and without the 217 descriptors",
        tuple(
            ModelConfig(plan=plan, readout=readout, descriptors=descriptors)
            for plan in ("native", "score")
            for descriptors in ("none", "rdkit")
            for readout in ("virtual-node", "sum", "mean")
        ),
    ),
    Table(
        "mlp",
        "Descriptors alone: MLP stacks against SCORE-MLP",
        _each("mlp", *PLANS, "1x4@1/K"),
    ),
    *(
        Table(
            f"independent-{name}",
            f"The leaderboard in short on other data: {name}",
            (
                *_each("dmpnn", "score", "skip05", "native"),
                ModelConfig(descriptors="rdkit"),
                CATBOOST,
                *_each("mlp", "score"),
                *_each("attentivefp", "score"),
                *_each("gatv2", "score"),
                *_each("gcn", "score"),
            ),
            seeds=3,
            dataset=name,
            others=(CHEMPROP,),
            against=("catboost", CHEMPROP),
        )
        for name in INDEPENDENT
    ),
)

"""What a student is made of, and how it is trained. Read by the command line; without torch.

Chosen on Huuskonen's solubilities (without the structures of ESOL) and on FreeSolv, the number of
epochs also by a look at one fold of AqSolDB: a small network needs more of them than its teacher
on many molecules. ESOL had no part in it.
"""

from dataclasses import dataclass

from molscore.config import Config
from molscore.errors import ConfigError
from molscore.nn.config import ModelConfig
from molscore.train.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class StudentModel(ModelConfig):
    """The architecture of a student: the options of any network, with smaller defaults."""

    plan: str = "1x3@0.5"
    width: int = 48

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.has_trees:
            what = "blend" if self.blend else f"block {self.block!r}"
            raise ConfigError(
                f"{what}: a student is one network, which is what makes it fast; leave it out"
            )

    def plain(self) -> ModelConfig:
        """Return the same architecture as what a bundle stores."""
        return ModelConfig(**self.to_dict())


@dataclass(frozen=True, kw_only=True)
class StudentTraining(Config):
    """The schedule of a student: fields of `TrainConfig`, whose folds are those of the teacher.

    Attributes:
        epochs: passes over the table and the transfer molecules.
        batch_size: molecules a step.
        learning_rate: the top of the schedule.
        warmup: share of the steps in which the rate climbs to its top.
        weight_decay: AdamW's, on weight matrices alone.
        clip: largest allowed norm of the gradient.
        seed: what the students are drawn from; it does not touch the folds.
        threads: torch threads a student uses.
    """

    epochs: int = 2 * TrainConfig.epochs
    batch_size: int = TrainConfig.batch_size
    learning_rate: float = TrainConfig.learning_rate
    warmup: float = TrainConfig.warmup
    weight_decay: float = TrainConfig.weight_decay
    clip: float = TrainConfig.clip
    seed: int = TrainConfig.seed
    threads: int = TrainConfig.threads

    def __post_init__(self) -> None:
        TrainConfig(**self.to_dict())

    def schedule(self, teacher: TrainConfig) -> TrainConfig:
        """Return the settings of a run with one student a fold of the teacher."""
        return TrainConfig(**self.to_dict(), folds=teacher.folds, split=teacher.split)

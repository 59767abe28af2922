"""Several models in one pass over the molecules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from molscore.bundle.reader import Bundle
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target
from molscore.errors import ConfigError
from molscore.predict.core import ChunkResult, ReadChunk, predict_read, read_chunk
from molscore.predict.engine import Engine, OnnxEngine, open_engine
from molscore.predict.judging import judge_read
from molscore.predict.layout import Answer
from molscore.predict.task import Task
from molscore.trust.judge import Judge
from molscore.trust.options import PLAIN, TrustOptions


@dataclass(frozen=True, eq=False)
class Models:
    """Models that predict the same molecules, one after another.

    Attributes:
        bundles: at least one.
        engines: the same models, ready to run.
        judges: one a model, each says how far that model can be trusted.
        targets: of all models, in their order. A name that several models have is followed by
            the name of the model's file: `logS` of `old.molscore` and `new.molscore` is
            `logS_old` and `logS_new`. Names that one model has stay as they are.
        trust: what is said beside predictions.
    """

    bundles: tuple[Bundle, ...]
    engines: tuple[Engine, ...]
    judges: tuple[Judge, ...]
    targets: tuple[Target, ...]
    trust: TrustOptions

    @classmethod
    def open(
        cls,
        bundles: Sequence[Bundle],
        engine: str = "onnx",
        device: str = "auto",
        trust: TrustOptions = PLAIN,
    ) -> Self:
        """Open an engine for each bundle; see `open_engine`.

        Args:
            bundles: at least one.
            engine: `onnx` or `torch`.
            device: of the torch engine.
            trust: what to say beside predictions.

        Raises:
            ConfigError: when two of them are the same, or cannot be told apart by name.
        """
        targets = name_targets(bundles)
        judges = tuple(Judge(one, trust) for one in bundles)
        engines = tuple(open_engine(one, engine, device) for one in bundles)
        return cls(tuple(bundles), engines, judges, targets, trust)

    @property
    def answer(self) -> Answer:
        """What is said of a row; further columns of several models end with their names."""
        several = len(self.bundles) > 1
        return Answer(
            targets=tuple(target.name for target in self.targets),
            intervals=tuple(flag for judge in self.judges for flag in judge.intervals),
            extras=tuple(
                f"{name}_{stem(bundle)}" if several else name
                for bundle, judge in zip(self.bundles, self.judges, strict=True)
                for name in judge.extras
            ),
            numeric=tuple(flag for judge in self.judges for flag in judge.numeric),
        )

    @property
    def can_be_sent(self) -> bool:
        """Whether other processes can open the same models."""
        return all(one.path is not None for one in self.bundles) and all(
            isinstance(one, OnnxEngine) for one in self.engines
        )

    def predict(self, task: Task, batch_size: int) -> ChunkResult:
        """Predict a chunk; a molecule is read once for each policy, not for each model.

        Args:
            task: consecutive rows.
            batch_size: most molecules per run.

        Returns:
            Values and spreads [n, n_targets] of all models. A row is `ok` if it is so for each
            of them; else it has the first other status, and the error names the models, unless
            all say the same. What some could predict is there.
        """
        read: dict[ChemPolicy, ReadChunk] = {}
        results = []
        for bundle, engine, judge in zip(self.bundles, self.engines, self.judges, strict=True):
            policy = bundle.manifest.policy
            if policy not in read:
                read[policy] = read_chunk(task.smiles, task.first_row, policy)
            result = predict_read(read[policy], bundle, engine, batch_size=batch_size)
            judge_read(read[policy], judge, result)
            results.append(result)
        return _join(results, [stem(bundle) for bundle in self.bundles])


def stem(bundle: Bundle) -> str:
    """Return the name of a model's file without its suffix: what a user calls it."""
    return Path(bundle.where).stem


def name_targets(bundles: Sequence[Bundle]) -> tuple[Target, ...]:
    """Return the targets of all models under names that are told apart; see `Models`.

    Raises:
        ConfigError: when that cannot be.
    """
    for i, bundle in enumerate(bundles):
        for other in bundles[:i]:
            if bundle.sha256 == other.sha256:
                raise ConfigError(
                    f"{other.where} and {bundle.where} are the same model; give it once"
                )
            if stem(bundle) == stem(other):
                raise ConfigError(
                    f"{other.where} and {bundle.where} have the same file name, which is to tell "
                    "them apart; copy one to another name"
                )
    counts = Counter(target.name for one in bundles for target in one.manifest.targets)
    targets = tuple(
        replace(target, name=f"{target.name}_{stem(one)}") if counts[target.name] > 1 else target
        for one in bundles
        for target in one.manifest.targets
    )
    name, n = Counter(target.name for target in targets).most_common(1)[0]
    if n > 1:
        raise ConfigError(
            f"two targets would be called {name!r}: the name of a target and that of a file "
            "together are the name of another target; copy the model to another file name"
        )
    return targets


def _join(results: Sequence[ChunkResult], names: Sequence[str]) -> ChunkResult:
    """Put the results of several models for the same rows side by side."""
    if len(results) == 1:
        return results[0]
    joined = ChunkResult(
        values=np.concatenate([result.values for result in results], axis=1),
        sd=np.concatenate([result.sd for result in results], axis=1),
        status=list(results[0].status),
        error=list(results[0].error),
        lower=np.concatenate([result.lower for result in results], axis=1),
        upper=np.concatenate([result.upper for result in results], axis=1),
        extras=[
            [cell for row in rows for cell in row]
            for rows in zip(*(result.extras for result in results), strict=True)
        ],
    )
    for row in range(len(joined)):
        said = [(result.status[row], result.error[row]) for result in results]
        if len(set(said)) > 1:
            bad = [(name, *one) for name, one in zip(names, said, strict=True) if one[0] != "ok"]
            joined.status[row] = bad[0][1]
            joined.error[row] = "; ".join(f"{name}: {error}" for name, _, error in bad)
    return joined

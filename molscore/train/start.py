"""Start from another model: take what it learned of molecules, not of its targets.

Everything below the head is taken: the encoder, the blocks and the readout. The head ties them
to the targets, so each new expert draws its own. Expert e starts from expert e mod n of the n
of the other model.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.reader import load_bundle
from molscore.bundle.structures import KnownStructures
from molscore.chem.policy import ChemPolicy
from molscore.config import Config
from molscore.data.foreign import clip
from molscore.errors import BundleError, ConfigError
from molscore.nn.config import ModelConfig

BACKBONE: Final = ("family.", "depth.", "readout.")
"""What the names of the weights that are taken begin with."""

_FREE: Final = ("dropout", "blend", "head_plan")
"""Fields of the architecture that may differ from the model to start from."""

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class Start:
    """A model to start from.

    Attributes:
        name: of the model, fit for messages.
        sha256: of its file.
        model: its architecture.
        policy: its standardisation of molecules.
        experts: the weights below the head of each of its experts.
        structures: hashes of the structures it was trained on, those of the model it
            started from itself among them.
    """

    name: str
    sha256: str
    model: ModelConfig
    policy: ChemPolicy
    experts: tuple[Weights, ...]
    structures: KnownStructures

    def settle(self, model: ModelConfig, policy: ChemPolicy) -> tuple[ModelConfig, ChemPolicy]:
        """Return architecture and standardisation of a model that starts from this one.

        They are those of this one, but for what the head, the trees and dropout are free in.

        Raises:
            ConfigError: when another one was asked for.
        """
        free = {name: getattr(model, name) for name in _FREE}
        self._refuse_others(model, self.model, free)
        self._refuse_others(policy, self.policy, ())
        return dataclasses.replace(self.model, **free), self.policy

    def _refuse_others(self, asked: Config, has: Config, free: Any) -> None:
        for field in dataclasses.fields(asked):
            name = field.name
            wanted, there = getattr(asked, name), getattr(has, name)
            if name not in free and wanted not in (there, asked.default(name)):
                raise ConfigError(
                    f"{name} {wanted!r} does not fit the model to start from, {self.name}, which "
                    f"has {there!r}: leave it out, or train without --from"
                )


def read_start(path: str | Path) -> Start:
    """Read the networks of a bundle.

    Raises:
        BundleError: when it cannot be read, or does not say what it was trained on.
        ConfigError: when it has no network.
    """
    bundle = load_bundle(path)
    manifest = bundle.manifest
    if "graph" not in manifest.model.kinds:
        raise ConfigError(f"{path}: a model of trees alone has no network to start from")
    structures = KnownStructures.from_arrays(bundle.arrays)
    if structures is None:
        raise BundleError(
            f"{bundle.where} does not say which structures it was trained on, so no model that "
            "starts from it could be judged; train it again"
        )
    experts = tuple(
        {
            name: array
            for name, array in bundle.expert_weights(i).items()
            if name.startswith(BACKBONE)
        }
        for i in range(manifest.n_experts)
    )
    return Start(
        name=clip(manifest.name),
        sha256=bundle.sha256,
        model=manifest.model,
        policy=manifest.policy,
        experts=experts,
        structures=structures,
    )

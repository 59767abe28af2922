"""What a bundle says about itself: `manifest.json`.

The manifest carries everything a prediction means (standardisation, features, targets, units)
and everything a reader may ask about where its numbers come from.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from molscore.bundle.migrations import SCHEMA_VERSION, migrate
from molscore.bundle.tensors import TensorSpec
from molscore.chem.descriptor_names import DESCRIPTOR_NAMES
from molscore.chem.features import FEATURIZER_VERSION
from molscore.chem.policy import ChemPolicy
from molscore.config import Config
from molscore.data.targets import Target
from molscore.errors import BundleError, ConfigError
from molscore.nn.config import ModelConfig

MAX_TARGETS: Final = 10_000
MAX_EXPERTS: Final = 1_000
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Member(Config):
    """Size in bytes and SHA-256 (64 lower-case hex digits) of one file in the bundle."""

    sha256: str
    size: int

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256) or self.size < 0:
            raise ConfigError("a member needs a sha256 of 64 hex digits and a size")


@dataclass(frozen=True, kw_only=True)
class Manifest(Config):
    """Everything a bundle says about itself.

    Attributes:
        schema_version: of this file; see `molscore.bundle.migrations`.
        created: UTC time, ISO 8601.
        molscore_version: what wrote the bundle.
        name: of the model; by default the file's stem.
        featurizer_version: of the integer codes, `molscore.chem.features.FEATURIZER_VERSION`.
        rdkit_version: what computed the features of the training data.
        policy: standardisation chosen at training.
        model: architecture of one expert.
        targets: what is predicted, in the order of the model's outputs.
        n_experts: experts in `weights.safetensors`.
        descriptor_names: molecule descriptors an expert takes, in order; empty without.
        tensors: dtype and shape of every tensor of one expert.
        training: data file name and sha256, rows used and left out, split, folds, repeats,
            seed, configuration, environment, warnings. Free-form JSON.
        metrics: of the out-of-fold predictions. Free-form JSON.
        members: hash and size of every other file in the bundle.
    """

    schema_version: int = SCHEMA_VERSION
    created: str
    molscore_version: str
    name: str
    featurizer_version: int = FEATURIZER_VERSION
    rdkit_version: str
    policy: ChemPolicy
    model: ModelConfig
    targets: tuple[Target, ...]
    n_experts: int
    descriptor_names: tuple[str, ...] = ()
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.schema_version != SCHEMA_VERSION:
            raise ConfigError(f"schema_version must be {SCHEMA_VERSION}")
        if not 1 <= len(self.targets) <= MAX_TARGETS:
            raise ConfigError(f"a model has 1 to {MAX_TARGETS} targets, got {len(self.targets)}")
        names = [target.name for target in self.targets]
        if len(set(names)) != len(names):
            raise ConfigError("two targets have the same name")
        if not 1 <= self.n_experts <= MAX_EXPERTS:
            raise ConfigError(f"a model has 1 to {MAX_EXPERTS} experts, got {self.n_experts}")
        if self.model.takes_descriptors != bool(self.descriptor_names):
            raise ConfigError("descriptor_names do not fit model.descriptors")
        if len(set(self.descriptor_names)) != len(self.descriptor_names):
            raise ConfigError("a descriptor stands twice")
        unknown = sorted(set(self.descriptor_names) - set(DESCRIPTOR_NAMES))
        if unknown:
            raise ConfigError(f"unknown descriptor {unknown[0][:80]!r}")

    @property
    def n_targets(self) -> int:
        """Values the model gives per molecule."""
        return len(self.targets)

    @property
    def n_descriptors(self) -> int:
        """Descriptors the head takes; 0 without."""
        return len(self.descriptor_names)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready built-in types."""
        plain = super().to_dict()
        for key in ("tensors", "members"):
            plain[key] = {name: item.to_dict() for name, item in plain[key].items()}
        return plain


def manifest_from_json(data: dict[str, Any], *, where: str) -> Manifest:
    """Build a manifest from its JSON, migrating an older schema.

    Args:
        data: the JSON object.
        where: what to call the bundle in an error message.

    Raises:
        BundleError: on another schema or featuriser than this molscore has, unknown keys, and
            values that are missing, of the wrong type or not to be combined.
    """
    data = dict(migrate(data, where=where))
    version = data.get("featurizer_version")
    if version != FEATURIZER_VERSION:
        raise BundleError(
            f"{where}: made with featurizer version {version}, this molscore has "
            f"{FEATURIZER_VERSION}: use the molscore that wrote it "
            f"({str(data.get('molscore_version'))[:40]}) or train again"
        )
    try:
        for key, kind in (("tensors", TensorSpec), ("members", Member)):
            items = data.get(key)
            if not isinstance(items, dict):
                raise ConfigError(f"manifest.json.{key}: expected a JSON object")
            data[key] = {
                name: kind.from_dict(item, where=f"manifest.json.{key}.{name}")
                for name, item in items.items()
            }
        for key in ("training", "metrics"):
            if not isinstance(data.get(key), dict):
                raise ConfigError(f"manifest.json.{key}: expected a JSON object")
        return Manifest.from_dict(data, where="manifest.json")
    except ConfigError as error:
        raise BundleError(f"{where}: {error}") from None

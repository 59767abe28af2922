import json
from typing import Any

import pytest
from handmade_bundle import manifest

from molscore.bundle import migrations
from molscore.bundle.manifest import Manifest, Member, manifest_from_json
from molscore.bundle.tensors import TensorSpec
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target
from molscore.errors import BundleError, ConfigError
from molscore.nn.config import ModelConfig


def full() -> Manifest:
    return manifest(
        (Target(name="logS", unit="mol/L", transform="log10", note="pH 7"),),
        policy=ChemPolicy(salts="parent", neutralize=True),
        model=ModelConfig(width=16, plan="2x2@1/K", descriptors="rdkit"),
        descriptor_names=("MolWt", "TPSA"),
        tensors={"w": TensorSpec(dtype="F32", shape=(2, 3))},
        training={"rows": 10, "folds": [0, 1], "warnings": []},
        metrics={"logS": {"rmse": 0.5, "r2": None}},
        members={"expert.onnx": Member(sha256="0" * 64, size=3)},
    )


def test_json_there_and_back() -> None:
    text = json.dumps(full().to_dict())
    assert manifest_from_json(json.loads(text), where="x") == full()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": 0}, "schema 0 is no longer readable"),
        ({"schema_version": None}, "no schema_version"),
        ({"schema_version": True}, "no schema_version"),
        ({"featurizer_version": 99}, "featurizer version 99, this molscore has 1"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"name": 3}, "manifest.json.name: expected str, got int"),
        ({"created": None}, "created"),
        ({"n_experts": 0}, "1 to 1000 experts, got 0"),
        ({"n_experts": 1.0}, "expected int, got float"),
        ({"targets": []}, "1 to 10000 targets, got 0"),
        ({"targets": [{"name": "a"}, {"name": "a"}]}, "same name"),
        ({"model": {"block": "transformer9"}}, "unknown block 'transformer9'"),
        ({"model": {"width": 10**9}}, "width must be between"),
        ({"model": {"plan": "9x9x9"}}, "plan"),
        ({"model": {"head_plan": "9x9x9"}}, "head_plan"),
        ({"model": {"block": "mlp", "descriptors": "none"}}, "made of descriptors"),
        ({"policy": {"salts": "largest"}}, "'largest' is not one of"),
        ({"descriptor_names": []}, "descriptor_names do not fit"),
        ({"descriptor_names": ["MolWt", "MolWt"]}, "a descriptor stands twice"),
        ({"descriptor_names": ["MolWt", "Beauty"]}, "unknown descriptor 'Beauty'"),
        ({"tensors": []}, "tensors: expected a JSON object"),
        ({"tensors": {"w": {"dtype": "F32", "shape": [-1]}}}, "malformed shape"),
        ({"tensors": {"w": {"dtype": "F16", "shape": [1]}}}, "dtype 'F16'"),
        ({"members": {"x": {"sha256": "zz", "size": 1}}}, "64 hex digits"),
        ({"training": 3}, "training: expected a JSON object"),
        ({"metrics": None}, "metrics: expected a JSON object"),
    ],
)
def test_a_wrong_value_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    data = full().to_dict() | changes
    with pytest.raises(BundleError, match=words) as caught:
        manifest_from_json(data, where="m.molscore")
    assert "m.molscore" in str(caught.value)


@pytest.mark.parametrize("key", ["created", "name", "policy", "model", "targets", "n_experts"])
def test_a_missing_value_is_refused_by_name(key: str) -> None:
    data = full().to_dict()
    del data[key]
    with pytest.raises(BundleError, match=key):
        manifest_from_json(data, where="x")


def test_a_future_schema_names_the_version_needed() -> None:
    data = full().to_dict() | {"schema_version": 7, "molscore_version": "3.2.0", "new": {}}
    with pytest.raises(BundleError, match=r"schema 7; .* up to 1: install molscore 3.2.0 or later"):
        manifest_from_json(data, where="x")


def test_an_old_schema_is_migrated_by_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename_title(data: dict[str, Any]) -> dict[str, Any]:
        return {"name": data["title"], **data, "schema_version": 1}

    def without_title(data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in rename_title(data).items() if key != "title"}

    monkeypatch.setitem(migrations.MIGRATIONS, 0, without_title)
    data = full().to_dict() | {"schema_version": 0, "title": "old"}
    del data["name"]
    assert manifest_from_json(data, where="x").name == "old"


def test_a_migration_that_does_not_advance_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(migrations.MIGRATIONS, 0, dict)
    with pytest.raises(BundleError, match="migration to schema 1 failed"):
        manifest_from_json(full().to_dict() | {"schema_version": 0}, where="x")


def test_the_schema_version_is_not_a_choice() -> None:
    with pytest.raises(ConfigError, match="schema_version must be 1"):
        manifest(schema_version=2)

"""Several models in one pass: each predicts what it predicts alone, told apart by name."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade_bundle import bundle_bytes
from tree_bundle import tree_bundle

import molscore
from molscore.api import predict_table
from molscore.bundle.reader import Bundle, load_bundle, parse_bundle
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target
from molscore.errors import ConfigError
from molscore.predict import core
from molscore.predict.core import predict_chunk
from molscore.predict.engine import Batch, OnnxEngine, Outputs
from molscore.predict.models import Models, name_targets
from molscore.predict.stream import predict_chunks
from molscore.predict.task import Task

SMILES = ["CCO", "C1CC", "", "CC(=O)[O-].[Na+]", "c1ccccc1", "*C"]


def bundle(where: str, *targets: str, **changes: Any) -> Bundle:
    named = tuple(Target(name=name) for name in targets or ("y",))
    return parse_bundle(bundle_bytes(named, name=where, **changes), where=where)


WHOLE = bundle("whole.molscore")
PARENT = bundle("parent.molscore", policy=ChemPolicy(salts="parent"))
TREES = parse_bundle(tree_bundle(), where="trees.molscore")


class Faulty(OnnxEngine):
    """Fails on molecules of three atoms."""

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        if any((arrays.n_atoms == 3).any() for arrays, _ in batches):
            raise RuntimeError("three")
        return super().run(batches)


def test_each_predicts_what_it_predicts_alone() -> None:
    bundles = [WHOLE, PARENT, TREES]
    together = Models.open(bundles).predict(Task(0, SMILES), 16)
    alone = [predict_chunk(SMILES, 0, one, OnnxEngine(one)) for one in bundles]
    np.testing.assert_array_equal(together.values, np.concatenate([r.values for r in alone], 1))
    np.testing.assert_array_equal(together.sd, np.concatenate([r.sd for r in alone], 1))
    assert together.status == alone[0].status
    assert together.error == alone[0].error  # all say the same, so no model is named
    assert together.values[3, 0] != together.values[3, 1]  # with and without the sodium


def test_a_molecule_is_read_once_for_each_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, ChemPolicy]] = []

    def parse(text: str, policy: ChemPolicy, row: int) -> Any:
        read.append((text, policy))
        return original(text, policy, row)

    original = core.parse_smiles
    monkeypatch.setattr(core, "parse_smiles", parse)
    other = bundle("other.molscore", n_experts=3)
    Models.open([WHOLE, PARENT, other, TREES]).predict(Task(0, SMILES), 16)
    assert sorted(text for text, _ in read) == sorted(SMILES * 2)
    assert {policy.salts for _, policy in read} == {"whole", "parent"}


def test_a_value_that_one_model_gives_is_kept_when_another_fails() -> None:
    models = replace(Models.open([WHOLE, PARENT]), engines=(OnnxEngine(WHOLE), Faulty(PARENT)))
    result = models.predict(Task(0, ["CCO", "CC", "C1CC"]), 16)
    assert result.status == ["failed", "ok", "invalid_smiles"]
    assert result.error == ["parent: the engine failed: RuntimeError: three", "", "unclosed ring"]
    assert np.isfinite(result.values[0, 0])
    assert np.isnan(result.values[0, 1])
    both = replace(Models.open([WHOLE, PARENT]), engines=(Faulty(WHOLE), Faulty(PARENT)))
    assert both.predict(Task(0, ["CCO"]), 16).error == ["the engine failed: RuntimeError: three"]


@pytest.mark.parametrize(
    ("bundles", "names"),
    [
        ([bundle("a.molscore", "y", "z")], ["y", "z"]),
        ([bundle("a.molscore", "y"), bundle("b.molscore", "z")], ["y", "z"]),
        (
            [bundle("d/a.molscore", "y", "z"), bundle("b.molscore", "y", "w")],
            ["y_a", "z", "y_b", "w"],
        ),
    ],
)
def test_a_name_that_several_have_is_followed_by_the_file(
    bundles: list[Bundle], names: list[str]
) -> None:
    assert [target.name for target in name_targets(bundles)] == names


@pytest.mark.parametrize(
    ("bundles", "words"),
    [
        ([WHOLE, TREES, WHOLE], "are the same model; give it once"),
        ([WHOLE, bundle("x/whole.molscore", "z")], "have the same file name"),
        (
            [bundle("a.molscore", "y"), bundle("b.molscore", "y", "y_a")],
            "two targets would be called 'y_a'",
        ),
    ],
)
def test_models_that_cannot_be_told_apart_are_refused(bundles: list[Bundle], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Models.open(bundles)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    y, z = (Target(name="y"),), (Target(name="y"), Target(name="z"))
    (tmp_path / "old.molscore").write_bytes(bundle_bytes(y, name="first"))
    (tmp_path / "new.molscore").write_bytes(bundle_bytes(z, name="second"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_workers_change_nothing(folder: Path) -> None:
    models = Models.open([load_bundle(folder / f"{name}.molscore") for name in ("old", "new")])
    chunks = [["C" * (i % 40 + 1) if i % 97 else "C1C" for i in range(512)] for _ in range(6)]
    serial = list(predict_chunks(chunks, models, workers=1))
    parallel = list(predict_chunks(chunks, models, workers=2))
    for one, other in zip(serial, parallel, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert (one.status, one.error) == (other.status, other.error)


def test_a_table_and_a_list(folder: Path) -> None:
    Path("in.smi").write_text("CCO\nC1CC\n")
    predict_table("in.smi", ["old.molscore", "new.molscore"], "out.csv", model_info=True)
    header, good, bad = Path("out.csv").read_text().splitlines()
    assert header == (
        "smiles,pred_y_old,pred_y_old_sd,pred_y_new,pred_y_new_sd,pred_z,pred_z_sd,"
        "status,error,model,model_sha256"
    )
    ids = [load_bundle(f"{name}.molscore").sha256 for name in ("old", "new")]
    assert good.endswith(f",ok,,old;new,{';'.join(ids)}")
    assert bad.startswith("C1CC,,,,,,,invalid_smiles,unclosed ring,")
    model = molscore.load(["old.molscore", "new.molscore"])
    frame = model.predict(["CCO", "C1CC"])
    assert [f"{frame[name][0]:.6g}" for name in ("pred_y_old", "pred_y_new", "pred_z")] == [
        good.split(",")[i] for i in (1, 3, 5)
    ]
    assert [manifest.name for manifest in model.manifests] == ["first", "second"]
    assert model.model_id == f"{ids[0][:12]}+{ids[1][:12]}"
    assert "'first' + 'second', targets: y_old, y_new, z" in repr(model)


def test_no_model(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no model is given"):
        molscore.load([])
    with pytest.raises(ConfigError, match="no model is given"):
        predict_table("in.smi", [])

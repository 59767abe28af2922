"""Runs that start from another model, and runs that leave structures out."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from molscore.api import evaluate, training
from molscore.api import train as api_train
from molscore.bundle.reader import load_bundle
from molscore.bundle.structures import STRUCTURES, KnownStructures
from molscore.chem.parse import structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.splits import make_folds
from molscore.errors import ConfigError, InputError
from molscore.nn.config import ModelConfig
from molscore.train.config import FINE_TUNING, TrainConfig
from molscore.train.expert import ExpertTrainer
from molscore.train.listing import read_listing
from molscore.train.start import BACKBONE, read_start
from tests.molecules import VARIED, molecule
from tests.unit.train.test_experts import training_data

ALCOHOLS = ["C" * k + "O" for k in range(3, 40)]
SETTINGS = {"epochs": 2, "batch_size": 8, "folds": 3, "width": 16}


def table(path, smiles, *, shift=0.0):
    rows = [f"{s},{np.sin(i) + shift:.3f}" for i, s in enumerate(smiles)]
    path.write_text("smiles,logS\n" + "\n".join(rows) + "\n")
    return path


def train(folder, name, smiles, **options):
    return api_train(
        table(folder / f"{name}.csv", smiles),
        output=folder / f"{name}.molscore",
        run_dir=folder / f"{name}-run",
        workers=1,
        **SETTINGS | options,
    )


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A model of alcohols, with a plan and a standardisation that are not the defaults."""
    folder = tmp_path_factory.mktemp("origin")
    return train(folder, "origin", ALCOHOLS, plan="1x2@0.5", salts="parent").bundle


def test_everything_below_the_head_is_taken(origin):
    start = read_start(origin)
    model, _ = start.settle(ModelConfig(), ChemPolicy())
    data = training_data()
    for expert in range(4):
        trainer = ExpertTrainer(
            data, model, TrainConfig(folds=2), expert, start=start.experts[expert % 3]
        )
        ours = {k: v.numpy() for k, v in trainer.model.state_dict().items()}
        theirs = load_bundle(origin).expert_weights(expert % 3)
        taken = {k for k in ours if k.startswith(BACKBONE)}
        assert taken == {k for k in ours if not k.startswith("head.")}
        assert all(np.array_equal(ours[k], theirs[k]) for k in taken)
        assert not np.array_equal(ours["head.hidden.weight"], theirs["head.hidden.weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w | {"family.norm.weight": np.ones(16, np.float32)}, "has a weight family.norm"),
        (lambda w: {k: w[k] for k in sorted(w)[1:]}, "has no "),
        (lambda w: w | {min(w): np.ones((1, 1), np.float32)}, "has no "),
    ],
)
def test_weights_that_are_not_those_of_the_architecture_are_refused(origin, change, message):
    start = read_start(origin)
    model, _ = start.settle(ModelConfig(), ChemPolicy())
    weights = change(dict(start.experts[0]))
    with pytest.raises(ConfigError, match=f"the model to start from {message}"):
        ExpertTrainer(training_data(), model, TrainConfig(folds=2), 0, start=weights)


def test_a_frozen_backbone_stays_and_the_head_learns(origin):
    start = read_start(origin)
    model, _ = start.settle(ModelConfig(), ChemPolicy())
    config = TrainConfig(epochs=2, folds=2, batch_size=8, freeze=True)
    trainer = ExpertTrainer(training_data(), model, config, 0, start=start.experts[0])
    before = {k: v.clone() for k, v in trainer.model.state_dict().items()}
    for _ in range(2):
        trainer.run_epoch()
    after = trainer.result().weights
    for name, was in before.items():
        same = np.array_equal(was.numpy(), after[name])
        assert same is (name.startswith(BACKBONE) or name in ("head.shift", "head.scale")), name


def test_a_model_that_starts_from_another_takes_its_architecture(origin, tmp_path):
    result = train(tmp_path, "tuned", VARIED, start=origin, dropout=0.2)
    manifest = load_bundle(result.bundle).manifest
    theirs = load_bundle(origin).manifest
    assert manifest.model == dataclasses.replace(theirs.model, dropout=0.2)
    assert manifest.policy == theirs.policy
    assert manifest.training["start"] == {
        "name": "origin",
        "sha256": load_bundle(origin).sha256,
        "rows_it_was_trained_on": 0,
    }
    assert result.metrics["logS"]["others"]["mean"] == result.metrics["logS"]["mean"]


def test_rows_the_other_model_knows_are_counted_and_judged_apart(origin, tmp_path, caplog):
    known = ALCOHOLS[:10]
    with caplog.at_level("WARNING"):
        result = train(tmp_path, "tuned", [*known, *VARIED], start=origin)
    (said,) = [r.message for r in caplog.records if "starting from" in r.message]
    assert f"{len(known)} of {len(known) + len(VARIED)} rows" in said
    scores = result.metrics["logS"]
    rest = scores["others"]["pooled"]["n"]
    assert rest == len(VARIED) < scores["pooled"]["n"]
    text = (tmp_path / "tuned-run" / "oof.csv").read_text().splitlines()[1:]
    unseen = [line.split(",") for line in text if int(line.split(",")[0]) >= len(known)]
    error = np.array([float(y) - float(p) for _, _, y, p in unseen])
    assert scores["others"]["pooled"]["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)


def test_the_models_before_the_model_to_start_from_are_not_forgotten(origin, tmp_path):
    second = train(tmp_path, "second", VARIED, start=origin, epochs=1).bundle
    keys = [structure_key(molecule(s)) for s in [*ALCOHOLS, *VARIED]]
    all_of_them = KnownStructures.of(keys).parts[b""]
    assert np.array_equal(load_bundle(second).arrays[STRUCTURES], all_of_them)
    third = train(tmp_path, "third", ALCOHOLS[:9], start=second, epochs=1).bundle
    assert load_bundle(third).manifest.training["start"]["rows_it_was_trained_on"] == 9
    table(tmp_path / "known.csv", [*ALCOHOLS[9:12], "FC(F)(F)CCCN"])
    assert evaluate(third, tmp_path / "known.csv").n_seen == 3


def test_resumed_runs_start_from_the_same_weights(origin, tmp_path):
    whole = train(tmp_path, "whole", VARIED, start=origin)
    other = tmp_path / "other"
    other.mkdir()
    train(other, "whole", VARIED, start=origin)
    (other / "whole-run" / "experts" / "expert-001.safetensors").unlink()
    again = train(other, "whole", VARIED, start=origin, resume=True, force=True)
    for i in range(3):
        a, b = (load_bundle(r.bundle).expert_weights(i) for r in (whole, again))
        assert all(np.array_equal(a[k], b[k]) for k in a)
    # From another model it is another run.
    strange = train(tmp_path, "strange", ALCOHOLS[:20], plan="1x2@0.5", salts="parent", seed=5)
    with pytest.raises(ConfigError, match="start_sha256"):
        train(other, "whole", VARIED, start=strange.bundle, resume=True, force=True)
    # And so is one that starts from none: nothing of the old start stays in the folder.
    train(other, "whole", VARIED, force=True)
    assert not (other / "whole-run" / "start.safetensors").exists()


def test_the_schedule_is_gentler_unless_given(origin, tmp_path):
    path = table(tmp_path / "t.csv", VARIED)
    common = {"start": origin, "folds": 2, "workers": 1, "force": True}
    result = api_train(path, output=tmp_path / "t.molscore", epochs=2, **common)
    said = load_bundle(result.bundle).manifest.training["config"]
    assert said["epochs"] == 2
    assert said["learning_rate"] == FINE_TUNING["learning_rate"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 32}, "width 32 does not fit the model to start from, origin, which has 16"),
        ({"block": "gcn"}, "block 'gcn' does not fit"),
        ({"plan": "native"}, "plan 'native' does not fit"),
        ({"tautomers": "canonical"}, "tautomers 'canonical' does not fit"),
    ],
)
def test_another_architecture_is_refused(origin, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        train(tmp_path, "tuned", VARIED, start=origin, **options)
    assert not (tmp_path / "tuned-run").exists()


def test_strict_reads_rows_as_the_model_to_start_from_does(origin, tmp_path, monkeypatch):
    policies = []
    monkeypatch.setattr(training, "refuse_unusable_rows", lambda _, policy: policies.append(policy))
    train(tmp_path, "tuned", VARIED, start=origin, strict=True, epochs=1)
    assert policies == [ChemPolicy(salts="parent")]


def test_freezing_needs_a_model_to_start_from(tmp_path):
    with pytest.raises(ConfigError, match=r"--freeze .* needs --from"):
        train(tmp_path, "tuned", VARIED, freeze=True)


def test_the_model_to_start_from_is_not_written_over(origin, tmp_path):
    copy = tmp_path / "tuned.molscore"
    shutil.copy(origin, copy)
    with pytest.raises(ConfigError, match="is the model to start from itself"):
        train(tmp_path, "tuned", VARIED, start=copy, force=True)


def test_excluded_structures_are_not_learned_from(tmp_path):
    # Written another way, as a salt of another, and one that cannot be read.
    other = tmp_path / "benchmark.smi"
    other.write_text("OCCC\nC1CC\nOCCCC.Cl\n")
    result = train(tmp_path, "m", ALCOHOLS, exclude=other, salts="parent")
    bundle = load_bundle(result.bundle)
    left = [structure_key(molecule(s)) for s in ALCOHOLS[2:]]
    assert np.array_equal(bundle.arrays[STRUCTURES], KnownStructures.of(left).parts[b""])
    assert result.prepared.counts["rows_excluded"] == 2
    (said,) = bundle.manifest.training["excluded"]
    assert said == {"table": "benchmark.smi", "sha256": read_listing(other).sha256}
    log = (tmp_path / "m-run" / "log.txt").read_text()
    assert (
        "warning: benchmark.smi: 2 structures to leave out (1 row could not be read) in column "
        "'smiles'"
    ) in log
    assert "2 rows hold excluded structures and are not used" in log
    rows = json.loads((tmp_path / "m-run" / "metrics.json").read_text())
    assert rows["logS"]["pooled"]["n"] == len(left)


def test_a_table_that_excludes_nothing_is_told(tmp_path):
    other = tmp_path / "benchmark.csv"
    other.write_text("smiles,name\nC1CC,broken\nfoo,ethanol\n")
    with pytest.raises(InputError, match=r"benchmark.csv: no structure to leave out: none of 2 "):
        train(tmp_path, "m", ALCOHOLS, exclude=other)
    assert not (tmp_path / "m-run").exists()
    other.write_text("smiles,name\nFC(F)(F)CCCN,amine\n")
    train(tmp_path, "m", ALCOHOLS, exclude=other, epochs=1)
    log = (tmp_path / "m-run" / "log.txt").read_text()
    assert "benchmark.csv: 1 structure to leave out (0 rows could not be read)" in log
    assert "0 rows hold excluded structures and are not used" in log


def test_excluding_moves_no_other_row_to_another_fold_of_a_file(tmp_path):
    folds = tmp_path / "folds.csv"
    given = make_folds("random", 3, 0, [str(i) for i in range(len(ALCOHOLS))])
    folds.write_text("row,fold\n" + "\n".join(f"{i},{f}" for i, f in enumerate(given)) + "\n")
    other = tmp_path / "benchmark.smi"
    other.write_text("\n".join(ALCOHOLS[:3]) + "\n")
    train(tmp_path, "m", ALCOHOLS, exclude=other, folds_file=folds)
    text = (tmp_path / "m-run" / "oof.csv").read_text().splitlines()[1:]
    found = {int(line.split(",")[0]): int(line.split(",")[1]) for line in text}
    assert found == {i: f for i, f in enumerate(given) if i >= 3}

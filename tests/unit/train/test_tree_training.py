"""Trees: what CatBoost predicts is what is kept, whatever the targets look like."""

import dataclasses
import importlib.util

import numpy as np
import pytest
from tree_bundle import manifest

from molscore.bundle.reader import load_bundle, parse_bundle
from molscore.bundle.tracing import example_arrays
from molscore.bundle.trees import FEATURE, NEVER, SHIFT, THRESHOLD, VALUES, tree_skeleton
from molscore.bundle.writer import pack_bundle
from molscore.chem.descriptor_names import DESCRIPTOR_NAMES
from molscore.chem.descriptors import compute_descriptors
from molscore.data.targets import Target, read_labelled
from molscore.errors import ConfigError, MolscoreError
from molscore.nn.config import ModelConfig
from molscore.predict.core import predict_chunk
from molscore.predict.engine import OnnxEngine
from molscore.train import trees
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.run import run_training
from molscore.train.trees import require_trees, train_trees
from tests.molecules import VARIED, molecule, pack

catboost = pytest.importorskip("catboost")

TREES = ModelConfig(block="catboost")
QUICK = TrainConfig(folds=2, iterations=30)
SMILES = [VARIED[i % len(VARIED)] for i in range(24)]
DESCRIPTORS = compute_descriptors([molecule(s) for s in SMILES])


def training_data(values, is_class=(False,)):
    n = len(SMILES)
    return TrainingData(
        graphs=pack(*SMILES),
        values=np.asarray(values, dtype=np.float64),
        is_class=is_class,
        folds=np.arange(n, dtype=np.int64) % 2,
        table_rows=np.arange(n, dtype=np.int64),
        descriptors=DESCRIPTORS,
    )


def numbers():
    return np.sin(np.arange(24.0))[:, None]


def bundle_of(result, scaler, targets):
    arrays = {f"descriptors/0/{k}": a for k, a in scaler.to_arrays().items()}
    raw = pack_bundle(
        manifest(targets, model=TREES, descriptor_names=DESCRIPTOR_NAMES),
        experts=[result.weights],
        onnx=tree_skeleton(len(targets), QUICK.iterations, len(DESCRIPTOR_NAMES)),
        arrays=arrays,
    )
    return parse_bundle(raw, where="x")


def test_a_bundle_gives_what_catboost_gives_odd_descriptors_or_not(monkeypatch):
    models, read = [], trees._read_trees

    def keep(model, *others):
        models.append(model)
        return read(model, *others)

    monkeypatch.setattr(trees, "_read_trees", keep)
    values = np.hstack([50.0 + 20.0 * numbers(), np.arange(24)[:, None] % 3 == 0])
    data = training_data(values, (False, True))
    result, scaler = train_trees(data, QUICK, 0)
    bundle = bundle_of(result, scaler, (Target(name="y"), Target(name="c", kind="classification")))
    rng = np.random.default_rng(0)
    odd = DESCRIPTORS[rng.integers(0, 24, 200)].copy()
    odd[rng.random(odd.shape) < 0.1] = np.nan
    odd[rng.random(odd.shape) < 0.05] = np.inf
    odd[rng.random(odd.shape) < 0.05] *= -1e30
    x = scaler.transform(np.vstack([DESCRIPTORS, odd]))
    batch, _ = example_arrays((1,) * len(x))
    found = OnnxEngine(bundle).run([(batch, x[None])])[0][0]
    seen = values[1::2, 0]  # fold 0 is held out
    wanted = models[0].predict(x) * seen.std() + seen.mean()
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-4)
    wanted = models[1].predict(x, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(found[:, 1], wanted, atol=1e-4)
    np.testing.assert_allclose(result.predictions, found[:24:2], atol=1e-4)


def test_same_seed_same_trees_and_other_experts_others():
    data = training_data(numbers())
    first, again = train_trees(data, QUICK, 0)[0], train_trees(data, QUICK, 0)[0]
    assert all(np.array_equal(first.weights[k], again.weights[k]) for k in first.weights)
    for other in (
        train_trees(data, QUICK, 2)[0],  # the same fold, repeated
        train_trees(data, dataclasses.replace(QUICK, seed=1), 0)[0],
    ):
        assert np.array_equal(first.rows, other.rows)
        assert not np.array_equal(first.weights[VALUES], other.weights[VALUES])


def test_a_target_learns_from_the_rows_that_have_it_and_from_no_others():
    whole = np.hstack([numbers(), numbers() ** 2])
    gappy = whole.copy()
    gappy[::3, 1] = np.nan
    both = train_trees(training_data(gappy, (False, False)), QUICK, 0)[0]
    first = train_trees(training_data(whole[:, :1]), QUICK, 0)[0]
    assert both.predictions.shape == (12, 2)
    assert np.isfinite(both.predictions).all()
    np.testing.assert_allclose(both.predictions[:, 0], first.predictions[:, 0], atol=1e-6)
    full = train_trees(training_data(whole, (False, False)), QUICK, 0)[0]
    assert not np.allclose(both.predictions[:, 1], full.predictions[:, 1])


def test_held_out_values_are_not_seen():
    data = training_data(numbers())
    other = numbers()
    other[data.folds == 0] = 1e6
    a, b = train_trees(data, QUICK, 0)[0], train_trees(training_data(other), QUICK, 0)[0]
    assert np.array_equal(a.predictions, b.predictions)


@pytest.mark.parametrize(
    ("values", "is_class", "expected"),
    [
        (np.full(24, 3.25), (False,), 3.25),
        (np.full(24, 1e8), (False,), 1e8),
        (np.ones(24), (True,), np.log(13)),
        (np.zeros(24), (True,), -np.log(13)),
        (np.where(np.arange(24) % 2, np.nan, 1.0), (False,), 0.0),
        (np.where(np.arange(24) == 1, 2.5, np.nan), (False,), 2.5),
    ],
    ids=["constant", "huge constant", "only yes", "only no", "no label", "one label"],
)
def test_nothing_to_learn_gives_a_constant(values, is_class, expected):
    result, scaler = train_trees(training_data(values[:, None], is_class), QUICK, 0)
    np.testing.assert_allclose(result.predictions, expected, rtol=1e-6)
    kind = "classification" if is_class[0] else "regression"
    bundle = bundle_of(result, scaler, (Target(name="y", kind=kind),))
    assert predict_chunk(["CCO"], 0, bundle, OnnxEngine(bundle)).status == ["ok"]


def test_equal_molecules_leave_nothing_to_ask():
    data = dataclasses.replace(training_data(numbers()), descriptors=DESCRIPTORS[[0] * 24])
    result, _ = train_trees(data, QUICK, 0)
    np.testing.assert_allclose(result.predictions, numbers()[1::2].mean(), rtol=1e-5)
    assert set(result.weights[THRESHOLD].tolist()) == {NEVER}
    assert result.weights[FEATURE].dtype == np.int64


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_a_target_does_not_change_what_is_learned(unit):
    a = train_trees(training_data(numbers()), QUICK, 0)[0].predictions
    b = train_trees(training_data(numbers() * unit), QUICK, 0)[0].predictions
    np.testing.assert_allclose(b / unit, a, rtol=1e-3, atol=1e-4)


def test_trees_in_a_form_we_do_not_know_are_not_kept(monkeypatch):
    read = trees._read_trees
    monkeypatch.setattr(
        trees,
        "_read_trees",
        lambda *a: dataclasses.replace(read(*a), values=read(*a).values[::-1].copy()),
    )
    with pytest.raises(MolscoreError, match="differ from CatBoost's prediction"):
        train_trees(training_data(numbers()), QUICK, 0)


def test_without_catboost_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'molscore\[train,boost\]'"):
        require_trees(QUICK, 1)


def test_more_trees_than_a_bundle_holds_are_refused_before_training():
    with pytest.raises(ConfigError, match=r"take 1[56]\d\d MB, more than the 512"):
        require_trees(TrainConfig(folds=50, iterations=10_000), 10)
    with pytest.raises(ConfigError, match="more than the 100000 a bundle may hold"):
        require_trees(TrainConfig(folds=1, iterations=100_000), 2)


@pytest.mark.parametrize(
    ("model", "train", "words"),
    [
        ({"block": "catboost", "plan": "4x1@1"}, {}, "plan '4x1@1' belongs to a network"),
        ({"block": "catboost", "integrator": "heun"}, {}, "integrator"),
        ({"block": "catboost", "width": 64}, {}, "width"),
        ({"block": "catboost", "blend": True}, {}, "blend"),
        ({"block": "catboost"}, {"epochs": 3}, "epochs 3 belongs to a network"),
        ({"block": "catboost"}, {"learning_rate": 0.1}, "learning_rate"),
        ({}, {"iterations": 3}, "iterations 3 belongs to trees"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(model, train, words):
    with pytest.raises(ConfigError, match=words):
        TrainConfig(**train).used_by(ModelConfig(**model))


def write_table(folder, n=24):
    path = folder / "table.csv"
    smiles = [*VARIED, *("C" * k + "O" for k in range(3, n))][:n]
    path.write_text("smiles,y\n" + "".join(f"{s},{np.sin(i):.3f}\n" for i, s in enumerate(smiles)))
    return path


def run(folder, table=None, model=TREES, **options):
    said: list[str] = []
    result = run_training(
        read_labelled(table or write_table(folder), targets=["y"]),
        output=folder / "m.molscore",
        run_dir=folder / "run",
        model=model,
        train=dataclasses.replace(QUICK, **({"epochs": 1} if model.blend else {})),
        workers=1,
        log=said.append,
        **options,
    )
    return result, said


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder, *run(folder)


def test_a_run_keeps_finished_experts_and_trains_the_others_again(finished):
    folder, result, said = finished
    assert "training 2 experts of 30 trees in 1 process on cpu" in said
    before = result.bundle.read_bytes()
    kept = folder / "run" / "experts" / "expert-000.safetensors"
    stamp = kept.stat().st_mtime_ns
    (folder / "run" / "experts" / "expert-001.safetensors").unlink()
    result.bundle.unlink()
    again, said = run(folder, resume=True)
    assert "resuming: 1 of 2 experts are done" in said
    assert "training 1 expert of 30 trees in 1 process on cpu" in said
    assert kept.stat().st_mtime_ns == stamp
    old, new = parse_bundle(before, where="old"), load_bundle(again.bundle)
    for i in range(2):
        weights = old.expert_weights(i)
        assert all(np.array_equal(weights[k], v) for k, v in new.expert_weights(i).items())


def test_the_bundle_predicts_the_mean_of_what_was_kept(finished):
    _, result, _ = finished
    bundle = load_bundle(result.bundle)
    assert set(bundle.manifest.tensors) == {FEATURE, THRESHOLD, VALUES, SHIFT}
    assert bundle.manifest.training["config"] == {
        "iterations": 30,
        "folds": 2,
        "repeats": 1,
        "split": "random",
        "seed": 0,
        "threads": 1,
    }
    done = predict_chunk([*VARIED, "C1CC"], 0, bundle, OnnxEngine(bundle))
    assert done.status.count("ok") == len(VARIED)
    assert np.isfinite(done.sd[:-1]).all()


def test_the_trees_of_a_blend_are_those_of_the_block(finished, tmp_path):
    folder, result, _ = finished
    blended, said = run(tmp_path, folder / "table.csv", ModelConfig(width=8, blend=True))
    assert any("2 experts of 1 epoch and 2 experts of 30 trees" in line for line in said)
    a, b = load_bundle(result.bundle), load_bundle(blended.bundle)
    assert b.manifest.n_experts == 2
    for i in range(2):
        weights = a.expert_weights(i)
        assert all(np.array_equal(v, b.expert_weights(i)[k]) for k, v in weights.items())
    assert result.metrics["y"]["mean"] == blended.metrics["y"]["trees"]["mean"]
    # All but one expert are done: the network of the second fold.
    (tmp_path / "run" / "experts" / "expert-001.safetensors").unlink()
    blended.bundle.unlink()
    again, said = run(tmp_path, folder / "table.csv", ModelConfig(width=8, blend=True), resume=True)
    assert "resuming: 3 of 4 experts are done" in said
    assert again.metrics == blended.metrics


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [{"block": "mlp"}, {"descriptors": "rdkit"}], ids=["mlp", "head with descriptors"]
)
def test_a_network_with_descriptors_is_blended_too(tmp_path, model):
    result, _ = run(tmp_path, model=ModelConfig(width=8, blend=True, **model))
    bundle = load_bundle(result.bundle)
    done = predict_chunk(list(VARIED), 0, bundle, OnnxEngine(bundle))
    assert set(done.status) == {"ok"}


def test_trees_cannot_do_without_descriptors():
    assert ModelConfig(block="catboost").descriptors == "rdkit"
    with pytest.raises(ConfigError, match="cannot do without"):
        ModelConfig(block="catboost", descriptors="none")


def test_trees_have_no_device_but_the_cpu(tmp_path):
    with pytest.raises(ConfigError, match="--device cuda belongs to a network"):
        run(tmp_path, device="cuda")
    assert not (tmp_path / "run").exists()

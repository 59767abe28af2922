"""Experts trained in this process: determinism, resumption, gaps, classes, odd data."""

import itertools
import math

import numpy as np
import pytest
import torch

from molscore.chem.descriptors import DESCRIPTOR_NAMES
from molscore.errors import InputError, MolscoreError
from molscore.nn.config import ModelConfig
from molscore.train.checkpoint import load_checkpoint, save_checkpoint
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.expert import (
    ExpertTrainer,
    learning_rate,
    masked_loss,
    train_until,
)
from tests.molecules import VARIED, pack

SMALL = ModelConfig(width=16)
QUICK = TrainConfig(epochs=4, batch_size=4, folds=2, seed=3)


def clock():
    return 0.0


def training_data(values=None, *, is_class=(False,), n=24, folds=2, descriptors=None):
    smiles = [VARIED[i % len(VARIED)] for i in range(n)]
    if values is None:
        values = np.linspace(-3, 2, n)[:, None]
    return TrainingData(
        graphs=pack(*smiles),
        values=np.asarray(values, dtype=np.float64),
        is_class=is_class,
        folds=np.arange(n, dtype=np.int64) % folds,
        table_rows=np.arange(n, dtype=np.int64),
        descriptors=descriptors,
    )


def run(data, model=SMALL, train=QUICK, expert=0, **options):
    trainer = ExpertTrainer(data, model, train, expert)
    train_until(trainer, trainer.config.epochs, clock=clock, **options)
    return trainer.result()


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_same_seed_same_bits_and_another_seed_others():
    data = training_data()
    first = run(data)
    assert same(first.weights, run(data).weights)
    other = run(data, train=TrainConfig(epochs=4, batch_size=4, folds=2, seed=4))
    assert not same(first.weights, other.weights)


def test_experts_differ_in_start_and_in_what_they_hold_out():
    data = training_data()
    a, b = run(data, expert=0), run(data, expert=1)
    assert sorted([*a.rows, *b.rows]) == list(range(24))
    assert not same(a.weights, b.weights)


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("block", ["dmpnn", "attentivefp", "mlp", "mpnn", "transformer"])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path, stop, block):
    model = ModelConfig(width=16, block=block, plan="1x3@learned", head_plan="1x2@learned")
    numbers = np.random.default_rng(0).standard_normal((24, len(DESCRIPTOR_NAMES)))
    numbers[::7, 2] = np.nan
    data = training_data(descriptors=numbers if model.descriptors == "rdkit" else None)
    whole = run(data, model)
    path = tmp_path / "expert.safetensors"
    trainer = ExpertTrainer(data, model, QUICK, 0)
    for _ in range(stop):
        trainer.run_epoch()
    save_checkpoint(path, trainer.checkpoint())
    resumed = run(data, model, checkpoint_path=path)
    assert same(whole.weights, resumed.weights)
    assert np.array_equal(whole.predictions, resumed.predictions)


def test_an_expert_that_is_cut_goes_on_elsewhere(tmp_path):
    data, path, told = training_data(), tmp_path / "expert.safetensors", []
    whole = run(data, SMALL)
    never = itertools.repeat(0.0)
    for until in (2, QUICK.epochs):
        trainer = ExpertTrainer(data, SMALL, QUICK, 0)
        train_until(
            trainer,
            until,
            checkpoint_path=path,
            clock=lambda: next(never),
            progress=lambda epoch, _: told.append(epoch),
        )
        assert load_checkpoint(path).epoch == until
    assert same(whole.weights, trainer.result().weights)
    assert told == [1, 2, 2, 3, 4]


def test_checkpoints_are_kept_while_training(tmp_path):
    path = tmp_path / "expert.safetensors"
    ticks = itertools.count(0.0, 10.0)
    trainer = ExpertTrainer(training_data(), SMALL, QUICK, 0)
    told = []
    train_until(
        trainer,
        QUICK.epochs,
        checkpoint_path=path,
        clock=lambda: next(ticks),
        progress=lambda epoch, loss: told.append((epoch, loss)),
    )
    assert load_checkpoint(path).epoch == QUICK.epochs
    assert [epoch for epoch, _ in told] == [1, 2, 3, 4]
    assert all(math.isfinite(loss) for _, loss in told)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", [lambda b: b[:100], lambda b: b"", lambda b: b"\xff" * len(b)])
def test_damaged_checkpoint_says_what_to_do(tmp_path, damage):
    path = tmp_path / "expert.safetensors"
    trainer = ExpertTrainer(training_data(), SMALL, QUICK, 0)
    trainer.run_epoch()
    save_checkpoint(path, trainer.checkpoint())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="delete it"):
        load_checkpoint(path)


def test_it_learns():
    n_atoms = np.diff(training_data().graphs.atom_ptr)
    data = training_data(n_atoms[:, None].astype(float))
    config = TrainConfig(epochs=60, batch_size=8, folds=2)
    trainer = ExpertTrainer(data, ModelConfig(width=32, dropout=0.0), config, 0)
    first = trainer.run_epoch()
    for _ in range(59):
        trainer.run_epoch()
    assert trainer.loss < 0.1 * first


def test_gaps_do_not_matter_to_the_loss():
    z, y = torch.randn(4, 2), torch.randn(4, 2)
    present = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    no_class = torch.tensor([False, False])
    expected = ((z - y) ** 2)[present.bool()].mean()
    torch.testing.assert_close(masked_loss(z, y, present, no_class), expected)
    y[2] = 1e6
    torch.testing.assert_close(masked_loss(z, y, present, no_class), expected)
    assert float(masked_loss(z, y, torch.zeros(4, 2), no_class)) == 0.0


def test_a_class_beside_a_number_takes_its_own_loss():
    z = torch.tensor([[0.3, 2.0], [-0.1, -1.0]])
    y = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    loss = masked_loss(z, y, torch.ones(2, 2), torch.tensor([False, True]))
    square = torch.tensor([0.09, 1.21])
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(
        z[:, 1], y[:, 1], reduction="none"
    )
    torch.testing.assert_close(loss, torch.cat([square, entropy]).mean())


def test_several_targets_with_gaps_and_a_class():
    values = np.full((24, 3), np.nan)
    values[::2, 0] = np.linspace(0, 1e6, 12)
    values[1::3, 1] = np.linspace(-1e-6, 1e-6, 8)
    values[:, 2] = np.arange(24) % 3 == 0
    result = run(training_data(values, is_class=(False, False, True)))
    assert result.predictions.shape == (12, 3)
    assert np.isfinite(result.predictions).all()
    assert all(np.isfinite(w).all() for w in result.weights.values())


@pytest.mark.parametrize(
    ("values", "is_class"),
    [
        (np.full((24, 1), 3.25), (False,)),
        (np.full((24, 1), 1e8), (False,)),
        (np.ones((24, 1)), (True,)),
        (np.where(np.arange(24) % 2, np.nan, 1.0)[:, None], (False,)),
    ],
    ids=["constant", "huge constant", "one class", "no label in the training part"],
)
def test_nothing_to_learn_gives_a_finite_model(values, is_class):
    result = run(training_data(values, is_class=is_class), expert=0)
    assert np.isfinite(result.predictions).all()
    if values.ndim and not is_class[0] and np.isfinite(values).all():
        np.testing.assert_allclose(result.predictions, values[result.rows], rtol=0.3)


def test_a_loss_that_explodes_is_told_and_no_result_is_given():
    config = TrainConfig(epochs=3, batch_size=4, folds=2, learning_rate=10.0, clip=1e6)
    trainer = ExpertTrainer(training_data(), SMALL, config, 0)
    with torch.no_grad():
        trainer.model.head.out.weight.fill_(float("inf"))
    with pytest.raises(MolscoreError, match="learning rate"):
        trainer.run_epoch()


def test_the_schedule_is_the_one_cycle_of_torch():
    config = TrainConfig(warmup=0.3, learning_rate=2e-3)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    oracle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=2e-3, total_steps=1000, pct_start=0.3, cycle_momentum=False
    )
    theirs = []
    for _ in range(1000):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        oracle.step()
    ours = [learning_rate(k, 1000, config) for k in range(1000)]
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * 0.01)


@pytest.mark.parametrize("warmup", [0.0, 0.3, 1.0])
def test_the_schedule_of_a_single_step_is_finite_and_positive(warmup):
    config = TrainConfig(warmup=warmup)
    assert 0 < learning_rate(0, 1, config) <= config.learning_rate


def test_vectors_and_learned_steps_are_not_decayed():
    train = TrainConfig(epochs=2, folds=2, weight_decay=5.0)
    model = ModelConfig(width=16, plan="1x4@learned")
    trainer = ExpertTrainer(training_data(), model, train, 0)
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.optimizer.step()  # all gradients are zero, so decay alone is at work
    assert before["depth.stages.0.dt.theta"].shape == (4,)
    for name, p in trainer.model.named_parameters():
        kept = 1.0 - train.learning_rate * 5.0 if p.ndim >= 2 else 1.0
        torch.testing.assert_close(p.detach(), before[name] * kept)


def test_data_survive_the_disk(tmp_path):
    data = training_data()
    data.save(tmp_path / "data.safetensors")
    back = TrainingData.load(tmp_path / "data.safetensors")
    assert back.digest() == data.digest()
    assert back.is_class == data.is_class
    changed = training_data(np.linspace(-3, 2.0001, 24)[:, None])
    assert changed.digest() != data.digest()


def test_data_that_are_not_there_or_not_data(tmp_path):
    with pytest.raises(InputError, match="cannot be read as training data"):
        TrainingData.load(tmp_path / "none.safetensors")
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read as training data"):
        TrainingData.load(tmp_path / "junk")


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6, 1e12])
def test_the_unit_of_a_target_does_not_change_what_is_learned(unit):
    n_atoms = np.diff(training_data().graphs.atom_ptr).astype(float)[:, None]
    config = TrainConfig(epochs=20, batch_size=8, folds=2)

    def relative(values):
        result = run(training_data(values), train=config)
        return result.predictions / values.max()

    np.testing.assert_allclose(relative(n_atoms * unit), relative(n_atoms), rtol=1e-2, atol=1e-2)


def test_training_moves_everything_to_the_device():
    # There is no GPU here; the meta device at least refuses to be mixed with the CPU.
    trainer = ExpertTrainer(training_data(), SMALL, QUICK, 0, device="meta")
    places = [*trainer.model.parameters(), *trainer.model.buffers()]
    assert {p.device.type for p in places} == {"meta"}
    batch = trainer._batch(np.arange(4))
    assert trainer.model.standardised(batch).device.type == "meta"


def test_weights_that_are_not_finite_end_the_training():
    trainer = ExpertTrainer(training_data(), SMALL, QUICK, 0)
    step = trainer.optimizer.step

    def broken(*arguments):
        step(*arguments)
        with torch.no_grad():
            trainer.flat[0][0] = float("inf")

    trainer.optimizer.step = broken
    trainer.steps_per_epoch = 1  # the loss of the only step is finite
    with pytest.raises(MolscoreError, match="try a lower learning rate"):
        trainer.run_epoch()

"""Every family trains to finite numbers under every depth plan, in every readout."""

import numpy as np
import pytest

from molscore.nn.config import ModelConfig
from molscore.nn.registry import block_names, made_of_descriptors
from molscore.train.config import TrainConfig
from molscore.train.expert import ExpertTrainer
from tests.unit.train.test_experts import training_data

PLANS = ("{k}x1@1", "{k}x1@0.5", "{k}x1+", "1x{k}@0.5", "1x{k}@1/K", "1x{k}@learned", "1x{k}+")
HARSH = TrainConfig(epochs=3, batch_size=8, folds=2, learning_rate=1e-2)


@pytest.mark.parametrize("k", range(2, 8))
@pytest.mark.parametrize("block", [b for b in block_names() if not made_of_descriptors(b)])
def test_graph_families_train_without_nan(block, k):
    data = training_data()
    for plan in PLANS:
        for readout in ("virtual-node", "sum", "mean"):
            model = ModelConfig(block=block, plan=plan.format(k=k), readout=readout, width=8)
            assert_trains(data, model)


@pytest.mark.parametrize("k", range(2, 8))
def test_the_mlp_trains_without_nan(k):
    data = training_data(descriptors=np.random.default_rng(k).normal(size=(24, 217)))
    for plan in PLANS:
        assert_trains(data, ModelConfig(block="mlp", plan=plan.format(k=k), width=8))


@pytest.mark.parametrize("integrator", ["heun", "midpoint", "rk4"])
@pytest.mark.parametrize("k", [2, 7])
def test_other_integrators_train_without_nan(integrator, k):
    data = training_data()
    for plan in PLANS:
        assert_trains(data, ModelConfig(plan=plan.format(k=k), integrator=integrator, width=8))


def assert_trains(data, model):
    # An epoch whose loss or weights are not finite raises.
    trainer = ExpertTrainer(data, model, HARSH, 0)
    losses = [trainer.run_epoch() for _ in range(HARSH.epochs)]
    assert np.isfinite(losses).all()
    assert np.isfinite(trainer.result().predictions).all()

"""Begin a training with what another model learned."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from molscore.data.foreign import clip
from molscore.errors import ConfigError
from molscore.nn.model import PropertyModel
from molscore.train.start import BACKBONE


def take_backbone(model: PropertyModel, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Copy all weights below the head into a model of the same architecture.

    Raises:
        ConfigError: when one is missing, has another shape, or has no place in the model: that
            of another version may compute something else.
    """
    surplus = {name for name in weights if name.startswith(BACKBONE)} - set(model.state_dict())
    if surplus:
        raise ConfigError(
            f"the model to start from has a weight {clip(min(surplus))} that this version of its "
            "architecture does not: another version of molscore trained it; train it again"
        )
    with torch.no_grad():
        for name, own in model.named_parameters():
            if not name.startswith(BACKBONE):
                continue
            there = weights.get(name)
            if there is None or there.shape != tuple(own.shape):
                raise ConfigError(f"the model to start from has no {name} of {list(own.shape)}")
            own.copy_(torch.from_numpy(np.array(there)))

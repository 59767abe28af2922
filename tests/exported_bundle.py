"""Real models, exported once per test run: an export takes seconds."""

from functools import cache
from typing import Any

import numpy as np
import torch
from handmade_bundle import manifest

from molscore.bundle.export import export_skeleton
from molscore.bundle.writer import pack_bundle
from molscore.chem.scaling import DescriptorScaler
from molscore.data.targets import Target
from molscore.nn.config import ModelConfig
from molscore.nn.model import PropertyModel, build_model

TARGETS = (
    Target(name="S", unit="mol/L", transform="log10"),
    Target(name="toxic", kind="classification", classes=("no", "yes")),
)
DESCRIPTORS = ("MolWt", "TPSA", "MolLogP", "BCUT2D_MWHI")


def expert(config: ModelConfig, n_targets: int, n_descriptors: int, seed: int) -> PropertyModel:
    """Return a model with random weights, none of them at its initial zero or one."""
    torch.manual_seed(seed)
    model = build_model(config, n_targets, n_descriptors)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.05 * torch.randn(tensor.shape, generator=generator))
    return model.eval()


@cache
def skeleton(config: ModelConfig, n_targets: int, n_descriptors: int) -> bytes:
    return export_skeleton(build_model(config, n_targets, n_descriptors))


def arrays_of(model: PropertyModel) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


@cache
def exported(
    n_experts: int = 2,
    descriptors: bool = False,
    targets: tuple[Target, ...] = TARGETS,
    width: int = 16,
    **changes: Any,
) -> bytes:
    """Return a bundle; `changes` go to `ModelConfig`."""
    names = DESCRIPTORS if descriptors else ()
    config = ModelConfig(width=width, descriptors="rdkit" if names else "none", **changes)
    experts = [expert(config, len(targets), len(names), seed) for seed in range(n_experts)]
    rng = np.random.default_rng(0)
    arrays = {}
    for i in range(n_experts if names else 0):
        scaler = DescriptorScaler.fit(100 * rng.standard_normal((50, len(names))), names)
        arrays |= {f"descriptors/{i}/{key}": a for key, a in scaler.to_arrays().items()}
    return pack_bundle(
        manifest(targets, model=config, descriptor_names=names),
        experts=[arrays_of(model) for model in experts],
        onnx=skeleton(config, len(targets), len(names)),
        arrays=arrays,
    )

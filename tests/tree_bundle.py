"""Boosted trees by hand: arrays, and a bundle of them, without CatBoost or torch."""

from typing import Any

import numpy as np
from handmade_bundle import graph, manifest, weights
from onnx import ModelProto, helper

from molscore.bundle.trees import (
    DEPTH,
    FEATURE,
    SHIFT,
    THRESHOLD,
    VALUES,
    WEIGHT,
    blend_skeleton,
    tree_skeleton,
)
from molscore.bundle.writer import pack_bundle
from molscore.chem.scaling import DescriptorScaler
from molscore.data.targets import Target
from molscore.nn.config import ModelConfig

NAMES = ("MolWt", "TPSA", "MolLogP", "MaxPartialCharge")
TARGETS = (Target(name="y"), Target(name="toxic", kind="classification", classes=("no", "yes")))
ITERATIONS = 5


def trees(expert: int = 0, n_targets: int = 2, iterations: int = ITERATIONS) -> dict[str, Any]:
    """Return the arrays of one expert with random questions and leaves."""
    rng = np.random.default_rng(expert)
    n = n_targets * iterations
    return {
        FEATURE: rng.integers(0, len(NAMES), DEPTH * n),
        THRESHOLD: rng.standard_normal(DEPTH * n).astype(np.float32),
        VALUES: rng.standard_normal((2**DEPTH, n)).astype(np.float32),
        SHIFT: rng.standard_normal(n_targets).astype(np.float32),
    }


def scaler() -> DescriptorScaler:
    values = np.random.default_rng(7).standard_normal((50, len(NAMES))) * 100
    return DescriptorScaler.fit(values, NAMES)


def scalers(n_experts: int) -> dict[str, Any]:
    arrays = scaler().to_arrays()
    return {f"descriptors/{i}/{k}": a for i in range(n_experts) for k, a in arrays.items()}


def tree_bundle(n_experts: int = 2, **changes: Any) -> bytes:
    """Return a bundle of block catboost; `changes` go to `pack_bundle`."""
    about = manifest(TARGETS, model=ModelConfig(block="catboost"), descriptor_names=NAMES)
    packing: dict[str, Any] = {
        "experts": [trees(i) for i in range(n_experts)],
        "onnx": tree_skeleton(len(TARGETS), ITERATIONS, len(NAMES)),
        "arrays": scalers(n_experts),
    }
    return pack_bundle(about, **(packing | changes))


def blended_bundle(share: tuple[float, float]) -> bytes:
    """Return a bundle that blends the handmade network with trees, `share` of the former."""
    about = manifest(TARGETS, model=ModelConfig(width=16, blend=True), descriptor_names=NAMES)
    experts = [
        {**weights(2, expert=i), **trees(i), WEIGHT: np.array(share, dtype=np.float32)}
        for i in range(2)
    ]
    onnx = blend_skeleton(graph(2).SerializeToString(), 2, ITERATIONS, len(NAMES))
    return pack_bundle(about, experts=experts, onnx=onnx, arrays=scalers(2))


def onnx_tree_operator() -> ModelProto:
    """Return the skeleton with ONNX's own tree operator, whose node ids run in a circle."""
    model = ModelProto.FromString(tree_skeleton(2, ITERATIONS, len(NAMES)))
    model.graph.node.append(
        helper.make_node(
            "TreeEnsembleRegressor",
            ["descriptors"],
            ["wild"],
            domain="ai.onnx.ml",
            nodes_treeids=[0, 0],
            nodes_nodeids=[0, 1],
            nodes_truenodeids=[1, 0],
            nodes_falsenodeids=[1, 10**9],
            nodes_featureids=[0, 10**6],
            nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ"],
            nodes_values=[0.0, 0.0],
            target_ids=[0],
            target_nodeids=[99],
            target_treeids=[0],
            target_weights=[1.0],
        )
    )
    return model

"""A stand-alone graph whose weights are stored in half precision: half the file.

The graph computes in single precision as before; each weight is widened where it is loaded.
"""

from typing import Final

import numpy as np

from molscore.bundle.feeding import build_inputs
from molscore.bundle.onnx_session import open_standalone
from molscore.bundle.reader import Bundle
from molscore.errors import ConfigError, ExportError

MIN_WEIGHTS: Final = 64
"""A tensor of fewer numbers stays as it is: it weighs nothing."""

UNTOUCHED: Final = ("head.scale", "head.shift")
"""Ends of the names of tensors that are in the units of the targets, which may be of any size."""

PROBES: Final = (
    *("O", "CCO", "CC(=O)O", "c1ccccc1", "Clc1ccc(Cl)cc1", "CCCCCCCCCCCC", "C1CCCCC1=O"),
    *("CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"),
    *("OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "NCC(=O)NCC(=O)NCC(=O)O", "C[N+](C)(C)CCO.[Cl-]"),
    *("c1ccc2cc3ccccc3cc2c1", "FC(F)(F)c1ccccc1", "CS(=O)(=O)N", "N#Cc1ccncc1", "CCOP(=S)(OCC)OCC"),
    *("CN1CCC[C@H]1c1cccnc1", "O=C(O)c1cc(Br)ccc1O", "C#CCOC(=O)Nc1ccccc1", "[O-][N+](=O)c1ccccc1"),
)
"""Molecules on which the cost is measured: small and large, with rings, charges, halogens."""


def halve(bundle: Bundle, raw: bytes) -> tuple[bytes, dict[str, float]]:
    """Store the weights of a graph of `compose_standalone` in half precision.

    Returns:
        The graph, and by target the largest difference it makes to the mean over `PROBES`, in
        the target's unit.

    Raises:
        ConfigError: for a model with trees: a threshold that is rounded sends molecules elsewhere.
        ExportError: when a weight is beyond the range of half precision, or a prediction is lost.
    """
    from onnx import ModelProto, TensorProto  # noqa: PLC0415
    from onnx.helper import make_node  # noqa: PLC0415
    from onnx.numpy_helper import from_array, to_array  # noqa: PLC0415

    if bundle.manifest.model.has_trees:
        raise ConfigError("--half is for networks: the thresholds of trees cannot be rounded")
    model = ModelProto.FromString(raw)
    widened = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < MIN_WEIGHTS:
            continue
        if tensor.name.endswith(UNTOUCHED):
            continue
        name, values = tensor.name, to_array(tensor)
        largest = np.abs(values).max()
        if largest > np.finfo(np.float16).max or 0 < largest < np.finfo(np.float16).tiny:
            raise ExportError(f"--half: a weight of {name} is beyond the range of half precision")
        tensor.CopyFrom(from_array(values.astype(np.float16), f"{name}/half"))
        cast = make_node("Cast", [tensor.name], [name], f"{name}/wide", to=TensorProto.FLOAT)
        widened.append(cast)
    nodes = [*widened, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    halved = bytes(model.SerializeToString(deterministic=True))
    inputs = build_inputs(bundle, PROBES)
    whole, half = (open_standalone(graph)(inputs)["mean"] for graph in (raw, halved))
    usable = np.isfinite(whole)
    if not np.isfinite(half[usable]).all():
        raise ExportError(
            "--half: the halved graph gives no finite number where the whole one does"
        )
    change = np.abs(whole - half, where=usable, out=np.zeros_like(whole)).max(axis=0)
    names = [target.name for target in bundle.manifest.targets]
    return halved, dict(zip(names, change.tolist(), strict=True))

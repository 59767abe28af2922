"""Stand-alone graphs with weights in half precision."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from exported_bundle import exported
from tree_bundle import tree_bundle

from molscore.api.exporting import export
from molscore.bundle import halving
from molscore.bundle.feeding import build_inputs
from molscore.bundle.halving import PROBES, halve
from molscore.bundle.onnx_session import open_standalone
from molscore.bundle.reader import parse_bundle
from molscore.bundle.standalone import compose_standalone
from molscore.errors import ConfigError, ExportError


def test_the_file_is_halved_and_the_difference_measured() -> None:
    bundle = parse_bundle(exported(), where="x")
    whole = compose_standalone(bundle)
    half, changes = halve(bundle, whole)
    onnx.checker.check_model(onnx.ModelProto.FromString(half), full_check=True)
    kept = [t for t in onnx.ModelProto.FromString(half).graph.initializer if t.data_type == 1]
    assert all(np.prod(t.dims) < halving.MIN_WEIGHTS for t in kept)
    inputs = build_inputs(bundle, PROBES)
    a, b = (open_standalone(graph)(inputs)["mean"] for graph in (whole, half))
    names = [target.name for target in bundle.manifest.targets]
    assert changes == dict(zip(names, np.abs(a - b).max(axis=0).tolist(), strict=True))
    assert all(0.0 < change < 0.05 for change in changes.values())
    n_halved = sum(w.size for w in bundle.expert_weights(0).values() if w.size >= 64)
    assert len(whole) - len(half) > n_halved * bundle.manifest.n_experts


def test_trees_are_refused() -> None:
    bundle = parse_bundle(tree_bundle(), where="x")
    with pytest.raises(ConfigError, match="thresholds of trees"):
        halve(bundle, compose_standalone(bundle))


def test_a_weight_beyond_half_precision_is_refused() -> None:
    bundle = parse_bundle(exported(), where="x")
    model = onnx.ModelProto.FromString(compose_standalone(bundle))
    tensor = next(t for t in model.graph.initializer if t.data_type == 1 and np.prod(t.dims) > 99)
    tensor.CopyFrom(
        onnx.numpy_helper.from_array(np.full(tuple(tensor.dims), 1e5, np.float32), tensor.name)
    )
    with pytest.raises(ExportError, match="beyond the range of half precision"):
        halve(bundle, model.SerializeToString())


def test_the_json_states_the_cost(tmp_path: Path) -> None:
    path = tmp_path / "m.molscore"
    path.write_bytes(exported())
    for half, dtype in ((False, "float32"), (True, "float16")):
        _, about = export(path, tmp_path / "m.onnx", half=half, force=True)
        weights = json.loads(about.read_text())["weights"]
        assert weights["dtype"] == dtype
        assert ("largest_change" in weights) == half

"""The stand-alone graph and its description, used as another program would."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from exported_bundle import exported
from handmade_bundle import bundle_bytes

from molscore.bundle import standalone
from molscore.bundle.feeding import build_inputs, describe_feeding
from molscore.bundle.reader import Bundle, parse_bundle
from molscore.bundle.standalone import compose_standalone
from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES
from molscore.data.targets import Target
from molscore.errors import ExportError
from molscore.predict.core import predict_chunk
from molscore.predict.engine import OnnxEngine

SMILES = ["C", "O", "[Na+].[Cl-]", "CC(=O)Oc1ccccc1C(=O)O", "C" * 60, r"F/C=C/[C@H](O)Cl"]
ALL_TARGETS = (
    Target(name="plain"),
    Target(name="a", transform="log10"),
    Target(name="b", transform="ln"),
    Target(name="c", transform="log1p"),
    Target(name="d", kind="classification"),
)


def run(raw: bytes, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def same_as_prediction(bundle: Bundle, smiles: list[str]) -> None:
    raw = compose_standalone(bundle)
    onnx.checker.check_model(onnx.ModelProto.FromString(raw), full_check=True)
    found = run(raw, build_inputs(bundle, smiles))
    wanted = predict_chunk(smiles, 0, bundle, OnnxEngine(bundle))
    assert wanted.status == ["ok"] * len(smiles)
    np.testing.assert_allclose(found["mean"], wanted.values, rtol=1e-5, atol=1e-6)
    if bundle.manifest.n_experts > 1:
        np.testing.assert_allclose(found["sd"], wanted.sd, rtol=1e-4, atol=1e-6)
    else:
        assert "sd" not in found
        assert np.isnan(wanted.sd).all()


@pytest.mark.parametrize("n_experts", [1, 3])
def test_every_transform_is_undone(n_experts: int) -> None:
    bundle = parse_bundle(bundle_bytes(ALL_TARGETS, n_experts), where="x")
    same_as_prediction(bundle, SMILES)


def test_a_real_model_gives_its_own_predictions() -> None:
    bundle = parse_bundle(exported(), where="x")
    same_as_prediction(bundle, SMILES)


@pytest.mark.slow
def test_a_model_with_descriptors_takes_them_unscaled() -> None:
    bundle = parse_bundle(exported(descriptors=True), where="x")
    same_as_prediction(bundle, [*SMILES, "C[Sn](C)(C)C"])


@pytest.mark.slow
def test_a_model_made_of_descriptors_takes_nothing_else() -> None:
    bundle = parse_bundle(exported(descriptors=True, block="mlp", head_plan="score"), where="x")
    assert list(build_inputs(bundle, SMILES)) == ["descriptors"]
    same_as_prediction(bundle, [*SMILES, "C[Sn](C)(C)C"])
    about = json.loads(json.dumps(describe_feeding(bundle, compose_standalone(bundle))))
    assert [port["name"] for port in about["inputs"]] == ["descriptors"]
    assert list(about["sizes"]) == ["graphs"]
    assert about["atom_features"] == about["bond_features"] == []
    assert [list(example["inputs"]) for example in about["examples"]] == [["descriptors"]] * 2


def test_a_graph_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = parse_bundle(bundle_bytes(ALL_TARGETS), where="x")
    inverse = standalone._inverse
    monkeypatch.setattr(
        standalone, "_inverse", lambda g, x, kind, p: inverse(g, x, kind.replace("ln", "none"), p)
    )
    with pytest.raises(ExportError, match="'mean' of the composed graph differs by"):
        compose_standalone(bundle)


def test_the_graph_stands_alone() -> None:
    bundle = parse_bundle(bundle_bytes(), where="x")
    model = onnx.ModelProto.FromString(compose_standalone(bundle))
    assert all(not t.external_data for t in model.graph.initializer)
    assert [entry.domain for entry in model.opset_import] == [""]
    props = {p.key: p.value for p in model.metadata_props}
    assert props == {
        "molscore_model": "handmade",
        "molscore_sha256": bundle.sha256,
        "targets": "logS",
    }


def test_another_program_can_follow_the_description(tmp_path: Path) -> None:
    """Only the files, numpy and ONNX Runtime: the examples give what the JSON promises."""
    bundle = parse_bundle(bundle_bytes(ALL_TARGETS, 3), where="x")
    onnx_bytes = compose_standalone(bundle)
    (tmp_path / "m.onnx").write_bytes(onnx_bytes)
    (tmp_path / "m.json").write_text(json.dumps(describe_feeding(bundle, onnx_bytes)))
    code = """
import json, sys
import numpy as np, onnxruntime
about = json.load(open("m.json"))
session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
for example in about["examples"]:
    inputs = {}
    for port in about["inputs"]:
        array = np.array(example["inputs"][port["name"]], dtype=port["dtype"])
        shape = [n if isinstance(n, int) else -1 for n in port["shape"]]
        inputs[port["name"]] = array.reshape(shape if array.size else
                                             [max(n, 0) for n in shape])
    for port, found in zip(about["outputs"], session.run(None, inputs)):
        wanted = np.array(example["outputs"][port["name"]])
        assert found.dtype == port["dtype"], port
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
assert "molscore" not in sys.modules
print(len(about["examples"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.stderr, done.stdout) == ("", "2\n")


def test_the_description_explains_every_code() -> None:
    bundle = parse_bundle(bundle_bytes(ALL_TARGETS), where="x")
    raw = compose_standalone(bundle)
    about = json.loads(json.dumps(describe_feeding(bundle, raw), allow_nan=False))
    assert about["onnx_sha256"] == hashlib.sha256(raw).hexdigest()
    for key, features in (("atom_features", ATOM_FEATURES), ("bond_features", BOND_FEATURES)):
        assert [f["name"] for f in about[key]] == [f.name for f in features]
        for text, feature in zip(about[key], features, strict=True):
            assert list(text["codes"]) == list(feature.labels)
            assert list(text["codes"].values()) == list(range(len(feature.labels)))
            assert text["meaning"]
    assert [t["name"] for t in about["targets"]] == ["plain", "a", "b", "c", "d"]
    # The graph undoes the transform already.
    assert all("transform" not in t for t in about["targets"])
    assert about["standardisation"] == bundle.manifest.policy.to_dict()
    first = about["examples"][0]["inputs"]
    edges = np.array(first["edge_index"])
    assert (edges[:, 0::2] == edges[::-1, 1::2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("block", ["dmpnn", "gat", "attentivefp"])
def test_sums_are_right_with_any_number_of_threads(block: str) -> None:
    """ONNX Runtime's ScatterND adds to one row from several threads, and loses some."""
    bundle = parse_bundle(exported(block=block), where="x")
    raw = compose_standalone(bundle)
    graph = onnx.ModelProto.FromString(raw).graph
    assert "ScatterND" not in {node.op_type for node in graph.node}
    inputs = build_inputs(bundle, SMILES * 20)

    def values(threads: int) -> np.ndarray:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
        return np.stack([session.run(["mean"], inputs)[0] for _ in range(20)])

    one, four = values(1), values(4)
    np.testing.assert_allclose(four, np.broadcast_to(one[0], four.shape), rtol=1e-4, atol=1e-5)


def test_a_calibrated_class_is_exported_calibrated() -> None:
    arrays = {"calibration/1": np.array([0.5, -0.25])}
    targets = (Target(name="y"), Target(name="toxic", kind="classification"))
    bundle = parse_bundle(bundle_bytes(targets, arrays=arrays), where="x")
    plain = parse_bundle(bundle_bytes(targets), where="x")
    engine = OnnxEngine(bundle)
    wanted = predict_chunk(SMILES, 0, bundle, engine)
    found = run(compose_standalone(bundle), build_inputs(bundle, SMILES))
    np.testing.assert_allclose(found["mean"], wanted.values, rtol=1e-5)
    before = predict_chunk(SMILES, 0, plain, engine)
    np.testing.assert_array_equal(before.values[:, 0], wanted.values[:, 0])
    assert (before.values[:, 1] != wanted.values[:, 1]).all()

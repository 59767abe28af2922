"""A whole bundle: written, read back, damaged in every way."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import handmade_bundle
import numpy as np
import pytest
from handmade_bundle import bundle_bytes, graph, manifest, weights
from hypothesis import given, settings
from hypothesis import strategies as st

from molscore.bundle.archive import pack, unpack
from molscore.bundle.reader import load_bundle, parse_bundle
from molscore.bundle.tensors import write_tensors
from molscore.bundle.writer import save_bundle
from molscore.chem.scaling import DescriptorScaler
from molscore.data.targets import Target
from molscore.errors import BundleError, ConfigError, MolscoreError
from molscore.nn.config import ModelConfig

RAW = bundle_bytes()


def save(path: Path, **changes: Any) -> str:
    options: dict[str, Any] = {
        "experts": [weights()],
        "onnx": graph().SerializeToString(),
        "arrays": {"structures": np.arange(5, dtype=np.uint64)},
    }
    return save_bundle(path, manifest(), **(options | changes))


def rebuilt(changes: dict[str, bytes], *, hashes: bool = True) -> bytes:
    """Replace members of a good bundle; with `hashes`, as a careful forger would."""
    members = unpack(RAW, where="x") | changes
    if hashes and "manifest.json" not in changes:
        text = json.loads(members["manifest.json"])
        for name, data in changes.items():
            text["members"][name] = {
                "sha256": hashlib.sha256(data).hexdigest(),
                "size": len(data),
            }
        members["manifest.json"] = json.dumps(text).encode()
    return pack(members)


def edited(**changes: Any) -> bytes:
    text = json.loads(unpack(RAW, where="x")["manifest.json"])
    return rebuilt({"manifest.json": json.dumps(text | changes).encode()})


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "m.molscore"
    sha256 = save(path, experts=[weights(), weights(expert=1)])
    bundle = load_bundle(path)
    assert bundle.sha256 == sha256
    assert bundle.model_id == sha256[:12]
    assert bundle.path == path
    assert bundle.manifest.n_experts == 2
    assert bundle.onnx_weights == ("table",)
    np.testing.assert_array_equal(bundle.arrays["structures"], np.arange(5))
    for i in range(2):
        found = bundle.expert_weights(i)
        assert set(found) == {"table"}
        assert found["table"].tobytes() == weights(expert=i)["table"].tobytes()
    with pytest.raises(IndexError):
        bundle.expert_weights(2)


def test_a_bundle_is_a_zip_without_code() -> None:
    with zipfile.ZipFile(io.BytesIO(RAW)) as file:
        names = set(file.namelist())
    assert names == {"manifest.json", "expert.onnx", "weights.safetensors", "arrays.safetensors"}
    assert b"pickle" not in RAW


def test_the_same_model_gives_the_same_bytes() -> None:
    assert bundle_bytes() == RAW


def test_scalars_and_counts_survive(tmp_path: Path) -> None:
    extra = {"theta": np.array(0.5, dtype=np.float32), "count": np.array([3, 4])}
    save(tmp_path / "m.molscore", experts=[weights() | extra])
    found = load_bundle(tmp_path / "m.molscore").expert_weights(0)
    assert found["theta"].shape == ()
    assert found["theta"] == np.float32(0.5)
    assert found["count"].tolist() == [3, 4]


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "m.molscore"
    path.write_text("precious")
    with pytest.raises(ConfigError, match="--force"):
        save(path)
    assert path.read_text() == "precious"
    save(path, force=True)
    assert load_bundle(path).manifest.name == "handmade"
    assert [p.name for p in tmp_path.iterdir()] == ["m.molscore"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MolscoreError, match="nowhere"):
        save(tmp_path / "nowhere" / "m.molscore")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path, value: float) -> None:
    bad = weights()
    bad["table"][3, 0] = value
    with pytest.raises(BundleError, match="'expert1/table' holds NaN or infinite"):
        save(tmp_path / "m.molscore", experts=[weights(), bad])
    assert list(tmp_path.iterdir()) == []


def test_experts_of_different_shapes_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"'expert1/table' is F32 \[\d+, 2\]"):
        save(tmp_path / "m.molscore", experts=[weights(), weights(n_targets=2)])


def test_experts_of_different_names_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="'expert1/table' are missing"):
        save(tmp_path / "m.molscore", experts=[weights(), {"other": weights()["table"]}])
    with pytest.raises(BundleError, match="3 weight tensors, the manifest says 2"):
        more = weights() | {"other": np.zeros(1, np.float32)}
        save(tmp_path / "m.molscore", experts=[weights(), more])


def test_a_graph_that_does_not_fit_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="'prediction' has shape"):
        save(tmp_path / "m.molscore", onnx=graph(3).SerializeToString())


def test_a_manifest_that_is_no_json_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be written as JSON"):
        save_bundle(
            tmp_path / "m.molscore",
            manifest(metrics={"rmse": float("nan")}),
            experts=[weights()],
            onnx=graph().SerializeToString(),
        )


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no such model: .*none\.molscore"):
        load_bundle(tmp_path / "none.molscore")
    with pytest.raises(BundleError, match="not a regular file"):
        load_bundle(tmp_path)
    with pytest.raises(BundleError, match="cannot read"):
        load_bundle("nul\0byte")


def test_a_pipe_and_an_endless_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BundleError, match="not a regular file"):
            load_bundle(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.molscore"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: no disk is used
    with pytest.raises(BundleError, match="more than 629145600 allowed"):
        load_bundle(path)


@pytest.mark.parametrize("name", ["expert.onnx", "weights.safetensors", "arrays.safetensors"])
def test_a_changed_member_does_not_match_its_hash(name: str) -> None:
    data = bytearray(unpack(RAW, where="x")[name])
    data[-1] ^= 1
    with pytest.raises(BundleError, match=f"{name} does not match its hash"):
        parse_bundle(rebuilt({name: bytes(data)}, hashes=False), where="x")
    with pytest.raises(BundleError, match=f"{name} has {len(data) + 1} bytes"):
        parse_bundle(rebuilt({name: bytes(data) + b"x"}, hashes=False), where="x")


@pytest.mark.parametrize("name", ["expert.onnx", "weights.safetensors", "manifest.json"])
def test_a_missing_member_is_named(name: str) -> None:
    members = unpack(RAW, where="x")
    del members[name]
    with pytest.raises(BundleError, match=name):
        parse_bundle(pack(members), where="x")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (edited(schema_version=2), "reads schemas up to 1"),
        (edited(featurizer_version=2), "featurizer version 2"),
        (edited(n_experts=3), "2 weight tensors, the manifest says 3"),
        (edited(n_experts=1000), "2 weight tensors, the manifest says 1000"),
        (edited(tensors={}), "names no tensors"),
        (edited(members={}), "lists other members"),
        (edited(targets=[{"name": "a"}, {"name": "b"}]), "'prediction' has shape"),
        (
            edited(tensors={"table": {"dtype": "F32", "shape": [1 << 30, 1 << 30]}}),
            r"is F32 \[\d+, 1\], the manifest says F32 \[1073741824, 1073741824\]",
        ),
    ],
)
def test_a_manifest_that_lies_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        parse_bundle(raw, where="x")


def test_a_forger_with_right_hashes_gets_no_further() -> None:
    bad = weights()
    bad["table"][0, 0] = np.nan
    forged = write_tensors({"expert0/table": bad["table"], "expert1/table": weights()["table"]})
    with pytest.raises(BundleError, match="holds NaN"):
        parse_bundle(rebuilt({"weights.safetensors": forged}), where="x")
    evil = graph()
    evil.graph.node[0].domain = "com.evil"
    with pytest.raises(BundleError, match=r"com\.evil"):
        parse_bundle(rebuilt({"expert.onnx": evil.SerializeToString()}), where="x")


def with_scalers(scalers: list[DescriptorScaler], names: tuple[str, ...]) -> bytes:
    n = len(names)
    return bundle_bytes(
        n_experts=2,
        experts=[weights(1, n, expert=i) for i in range(2)],
        onnx=graph(1, n).SerializeToString(),
        arrays={
            f"descriptors/{i}/{key}": array
            for i, scaler in enumerate(scalers)
            for key, array in scaler.to_arrays().items()
        },
        model=ModelConfig(width=16, descriptors="rdkit"),
        descriptor_names=names,
    )


NAMES = ("MolWt", "TPSA")


def scaler(names: tuple[str, ...] = NAMES, seed: int = 0) -> DescriptorScaler:
    rng = np.random.default_rng(seed)
    return DescriptorScaler.fit(rng.standard_normal((20, len(names))), names)


def test_every_expert_has_a_descriptor_scaler() -> None:
    bundle = parse_bundle(with_scalers([scaler(), scaler(seed=1)], NAMES), where="x")
    for i in range(2):
        np.testing.assert_array_equal(bundle.scaler(i).mean, scaler(seed=i).mean)


@pytest.mark.parametrize(
    ("scalers", "words"),
    [
        ([scaler()], "expected descriptor scalers of 2 experts"),
        ([scaler(), scaler(("MolWt", "qed"))], "expert 1 is of other descriptors"),
        ([scaler(), scaler(("TPSA", "MolWt"))], "expert 1 is of other descriptors"),
    ],
)
def test_scalers_that_do_not_fit_are_refused(scalers: list[Any], words: str) -> None:
    with pytest.raises(BundleError, match=words):
        with_scalers(scalers, NAMES)


def test_loading_imports_neither_torch_nor_onnxruntime(tmp_path: Path) -> None:
    path = tmp_path / "m.molscore"
    path.write_bytes(RAW)
    code = (
        "import sys; from molscore.bundle.reader import load_bundle; load_bundle(sys.argv[1]); "
        "print([m for m in ('torch', 'onnxruntime', 'pandas', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def load_or_refuse(raw: bytes) -> None:
    try:
        parse_bundle(raw, where="x")
    except BundleError as error:
        assert str(error).startswith("x: ")


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_harmless(data: st.DataObject) -> None:
    raw = bytearray(RAW)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    load_or_refuse(bytes(raw))


def test_every_truncation_is_refused() -> None:
    for length in range(0, len(RAW), 7):
        with pytest.raises(BundleError):
            parse_bundle(RAW[:length], where="x")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_members_with_right_hashes_are_refused_or_harmless(data: st.DataObject) -> None:
    """Damage behind the hashes: what a forger, or a faulty writer, could reach."""
    name = data.draw(st.sampled_from(["expert.onnx", "weights.safetensors", "arrays.safetensors"]))
    member = bytearray(unpack(RAW, where="x")[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(member) - 1))
        member[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    load_or_refuse(rebuilt({name: bytes(member)}))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_changed_manifest_is_refused_or_harmless(data: st.DataObject) -> None:
    text = json.loads(unpack(RAW, where="x")["manifest.json"])
    node: Any = text
    for _ in range(3):
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else [0]))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        node = inner
    else:
        key = sorted(node)[0] if isinstance(node, dict) else 0
    node[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
        | st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(), st.none(), max_size=2)
    )  # fmt: skip
    members = unpack(RAW, where="x") | {"manifest.json": json.dumps(text).encode()}
    load_or_refuse(pack(members))


def test_the_handmade_model_is_what_it_says() -> None:
    assert handmade_bundle.expected(["C", "O"]) == pytest.approx(0.05 + 0.07)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("calibration/0", np.array([1.0, 0.0])),  # of a regression
        ("calibration/1", np.array([0.0, 1.0])),
        ("calibration/1", np.array([1.0, np.nan])),
        ("calibration/1", np.array([1.0])),
        ("calibration/1", np.array([1.0, 0.0], dtype=np.float32)),
        ("calibration/2", np.array([1.0, 0.0])),
        ("calibration/x", np.array([1.0, 0.0])),
    ],
)
def test_a_calibration_that_makes_no_sense_is_refused(name: str, array: np.ndarray) -> None:
    targets = (Target(name="y"), Target(name="toxic", kind="classification"))
    with pytest.raises(BundleError, match="calibration/"):
        bundle_bytes(targets, arrays={name: array})

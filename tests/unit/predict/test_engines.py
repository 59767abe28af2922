import builtins
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from exported_bundle import exported
from handmade_bundle import bundle_bytes, graph

from molscore.bundle.reader import parse_bundle
from molscore.bundle.tracing import example_arrays
from molscore.errors import BundleError, ConfigError
from molscore.nn.config import ModelConfig
from molscore.predict.engine import OnnxEngine, TorchEngine, open_engine


def both(bundle_raw: bytes) -> tuple[OnnxEngine, TorchEngine]:
    bundle = parse_bundle(bundle_raw, where="x")
    return OnnxEngine(bundle), TorchEngine(bundle, "cpu")


@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1), (1, 40, 2), (400,), (12,) * 200])
def test_the_engines_agree(sizes: tuple[int, ...]) -> None:
    onnx, torch_engine = both(exported())
    arrays, _ = example_arrays(sizes, seed=9)
    [a], [b] = onnx.run([(arrays, None)]), torch_engine.run([(arrays, None)])
    assert a.shape == b.shape == (2, len(sizes), 2)
    assert a.dtype == b.dtype == np.float32
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert not np.allclose(a[0], a[1])


@pytest.mark.slow
def test_the_engines_agree_with_descriptors_of_each_expert() -> None:
    onnx, torch_engine = both(exported(descriptors=True))
    arrays, descriptors = example_arrays((3, 1, 20), 4, seed=9)
    assert descriptors is not None
    stacked = np.stack([descriptors, 2 * descriptors])
    [a], [b] = onnx.run([(arrays, stacked)]), torch_engine.run([(arrays, stacked)])
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    [same] = onnx.run([(arrays, np.stack([descriptors, descriptors]))])
    np.testing.assert_array_equal(a[0], same[0])
    assert not np.allclose(a[1], same[1])


def test_running_does_not_change_the_thread_count() -> None:
    before = torch.get_num_threads()
    _, engine = both(exported())
    arrays, _ = example_arrays((3,))
    engine.run([(arrays, None)])
    assert torch.get_num_threads() == before


def test_a_graph_that_passes_the_scan_but_not_the_runtime_is_a_bundle_error() -> None:
    model = graph()
    model.graph.node[1].input[0] = "nowhere"
    bundle = parse_bundle(bundle_bytes(onnx=model.SerializeToString()), where="m.molscore")
    with pytest.raises(BundleError, match=r"m\.molscore: ONNX Runtime refuses the graph"):
        OnnxEngine(bundle)


def test_weights_that_do_not_fit_the_configuration_are_a_bundle_error() -> None:
    with pytest.raises(BundleError, match="do not fit the configuration"):
        TorchEngine(parse_bundle(bundle_bytes(), where="x"), "cpu")


def test_a_configuration_larger_than_memory_is_refused_at_once() -> None:
    """A manifest may claim 64 blocks of width 4096: several GB, were they allocated."""
    huge = ModelConfig(width=4096, plan="64x1@1", block="attentivefp")
    before = psutil.Process().memory_info().rss
    with pytest.raises(BundleError, match="do not fit the configuration"):
        TorchEngine(parse_bundle(bundle_bytes(model=huge), where="x"), "cpu")
    assert psutil.Process().memory_info().rss - before < 1 << 28


@pytest.mark.parametrize(
    ("engine", "device", "words"),
    [
        ("tensorflow", "cpu", "unknown engine 'tensorflow'; expected one of onnx, torch"),
        ("onnx", "tpu", "unknown device 'tpu'"),
        ("onnx", "cuda", "--device cuda needs --engine torch"),
        ("torch", "tpu", "unknown device 'tpu'"),
    ],
)
def test_what_cannot_run_is_refused(engine: str, device: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_engine(parse_bundle(bundle_bytes(), where="x"), engine, device)


def test_a_device_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="'cuda' is not available here"):
        open_engine(parse_bundle(bundle_bytes(), where="x"), "torch", "cuda")


def test_without_torch_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(ConfigError, match=r"install molscore\[train\]"):
        TorchEngine(parse_bundle(bundle_bytes(), where="x"))

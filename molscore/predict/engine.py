"""What runs a model: ONNX Runtime (the default) or torch."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.onnx_session import OnnxSession, open_session
from molscore.bundle.reader import Bundle
from molscore.chem.packed import GraphArrays
from molscore.errors import BundleError, ConfigError
from molscore.nn.devices import DEVICES, resolve_device

if TYPE_CHECKING:
    import torch

ENGINES: Final = ("onnx", "torch")

Outputs = NDArray[np.float32]
Batch = tuple[GraphArrays, NDArray[np.float32] | None]
"""At least one molecule, and descriptors float32 [n_experts, n_graphs, n_descriptors], scaled for
each expert; None if the model takes none."""


class Engine(Protocol):
    """All experts of a bundle, ready to run."""

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        """Return the raw outputs of each batch, float32 [n_experts, n_graphs, n_targets]."""
        ...


class OnnxEngine:
    """One single-threaded ONNX Runtime session per expert; torch is never imported.

    Args:
        bundle: the model.
        threads: threads within an operator; results are only promised to be equal for 1.

    Raises:
        BundleError: when ONNX Runtime refuses the graph.
    """

    def __init__(self, bundle: Bundle, threads: int = 1) -> None:
        self._sessions = [
            _open_expert(bundle, i, threads) for i in range(bundle.manifest.n_experts)
        ]

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        """See `Engine.run`."""
        feeds: list[dict[str, NDArray[Any]]] = [arrays._asdict() for arrays, _ in batches]
        outputs: list[list[Outputs]] = [[] for _ in batches]
        # Expert by expert: the weights and buffers of one session fit a core's cache, not of all.
        for index, session in enumerate(self._sessions):
            for feed, (_, descriptors), found in zip(feeds, batches, outputs, strict=True):
                if descriptors is not None:
                    feed["descriptors"] = descriptors[index]
                found.append(session.run(feed))
        return [np.stack(found) for found in outputs]


class TorchEngine:
    """The experts as torch modules, rebuilt from configuration and weights.

    Args:
        bundle: the model.
        device: `auto` takes cuda where torch finds it, else cpu.

    Raises:
        ConfigError: when torch or the device is not there.
        BundleError: when the weights do not fit the configuration.
    """

    def __init__(self, bundle: Bundle, device: str = "auto") -> None:
        try:
            import torch  # noqa: PLC0415 (3 s; only this engine needs it)
        except ImportError:
            raise ConfigError(
                "--engine torch needs torch: install molscore[train] or use --engine onnx"
            ) from None
        if bundle.manifest.model.has_trees:
            raise ConfigError(
                f"--engine torch cannot run the trees in {bundle.where}: use --engine onnx"
            )
        self._torch = torch
        self.device = resolve_device(device)
        self._experts = [self._build(bundle, i) for i in range(bundle.manifest.n_experts)]

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        """See `Engine.run`."""
        return [self._run_batch(*batch) for batch in batches]

    def _run_batch(self, arrays: GraphArrays, descriptors: NDArray[np.float32] | None) -> Outputs:
        from molscore.nn.batch import GraphBatch  # noqa: PLC0415 (imports torch)

        batch = GraphBatch.from_arrays(arrays, device=self.device)
        outputs = []
        with self._torch.inference_mode():
            for index, expert in enumerate(self._experts):
                if descriptors is not None:
                    extra = self._torch.from_numpy(descriptors[index]).to(self.device)
                    batch = batch._replace(descriptors=extra)
                outputs.append(expert(batch))
            stacked = self._torch.stack(outputs)
        result: Outputs = stacked.cpu().numpy()
        return result

    def _build(self, bundle: Bundle, index: int) -> "torch.nn.Module":
        from molscore.nn.model import build_model  # noqa: PLC0415 (imports torch)

        manifest = bundle.manifest
        build = partial(build_model, manifest.model, manifest.n_targets, manifest.n_descriptors)
        # First without memory: a manifest may claim any size, the weights have one.
        with self._torch.device("meta"):
            wanted = {name: tuple(t.shape) for name, t in build().state_dict().items()}
        found = {name: spec.shape for name, spec in manifest.tensors.items()}
        if wanted != found:
            name = sorted(set(wanted.items()) ^ set(found.items()))[0][0]
            raise BundleError(
                f"{bundle.where}: the weights do not fit the configuration: {name!r} has shape "
                f"{found.get(name)}, expected {wanted.get(name)}"
            )
        model = build()
        model.load_state_dict(
            {
                name: self._torch.from_numpy(np.array(array))
                for name, array in bundle.expert_weights(index).items()
            }
        )
        return model.eval().to(self.device)


def open_engine(bundle: Bundle, engine: str = "onnx", device: str = "auto") -> Engine:
    """Return the engine called `engine`.

    Args:
        bundle: the model.
        engine: `onnx` or `torch`.
        device: of the torch engine; `onnx` runs on the CPU and takes only `auto` and `cpu`.

    Raises:
        ConfigError: on an unknown engine or device, or a combination that cannot run.
    """
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine {engine!r}; expected one of {', '.join(ENGINES)}")
    if device not in DEVICES:
        raise ConfigError(f"unknown device {device!r}; expected one of {', '.join(DEVICES)}")
    if engine == "torch":
        return TorchEngine(bundle, device)
    if device not in {"auto", "cpu"}:
        raise ConfigError(
            f"--device {device} needs --engine torch; the onnx engine runs on the CPU"
        )
    return OnnxEngine(bundle)


def _open_expert(bundle: Bundle, index: int, threads: int) -> OnnxSession:
    weights = bundle.expert_weights(index)
    try:
        return open_session(bundle.onnx, weights, bundle.onnx_weights, threads=threads)
    except Exception as error:  # ONNX Runtime's exceptions share no other base
        raise BundleError(
            f"{bundle.where}: ONNX Runtime refuses the graph: {_one_line(error)}"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]

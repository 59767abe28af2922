"""An ONNX Runtime session over a skeleton and one expert's weights.

One thread, no spinning, nothing on stderr, nothing read from a disk: graph and weights are
bytes in memory. Importing this module does not import ONNX Runtime.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.signature import OUTPUT
from molscore.bundle.tensors import Arrays

Inputs = dict[str, NDArray[Any]]

_FATAL: Final = 4  # ONNX Runtime's severities end here; errors come back as exceptions


class OnnxSession:
    """A graph ready to run.

    Args:
        session: the `onnxruntime.InferenceSession`.
        held: what the session points into without owning it.
    """

    def __init__(self, session: Any, held: object) -> None:
        self._session = session
        self._held = held

    def run(self, inputs: Inputs) -> NDArray[np.float32]:
        """Return the output, float32 [n_graphs, n_targets]."""
        result: NDArray[np.float32] = self._session.run([OUTPUT], inputs)[0]
        return result


def open_session(raw: bytes, weights: Arrays, names: tuple[str, ...] | None = None) -> OnnxSession:
    """Create a session whose weights are injected from memory.

    Args:
        raw: the skeleton; one from a file must have passed `onnx_scan.scan`.
        weights: arrays by initialiser name.
        names: the external initialisers of `raw`; by default found in it.

    Raises:
        RuntimeError: (of ONNX Runtime) when the graph cannot be loaded.
    """
    onnxruntime = _runtime()

    options = _options()
    chosen = _external_names(raw) if names is None else names
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(_owned(weights[n])) for n in chosen]
    options.add_external_initializers(list(chosen), values)
    session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    return OnnxSession(session, values)


def open_standalone(raw: bytes) -> Callable[[Inputs], dict[str, NDArray[Any]]]:
    """Return a function that runs a stand-alone graph of ours: inputs to outputs, by name."""
    onnxruntime = _runtime()

    session = onnxruntime.InferenceSession(raw, _options(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Inputs) -> dict[str, NDArray[Any]]:
        return dict(zip(names, session.run(names, inputs), strict=True))

    return run


def _options() -> Any:
    """Session options: one thread, no spinning, nothing on stderr.

    With more threads within an operator, a ScatterND would lose sums.
    """
    onnxruntime = _runtime()

    onnxruntime.set_default_logger_severity(_FATAL)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    if _has_common_arena():
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


@cache
def _has_common_arena() -> bool:
    """Make one arena for all sessions of this process, which run one after another.

    Each would otherwise keep buffers of its own for the largest chunk it has seen: five experts
    hold twice as much, and it is never the same.
    """
    onnxruntime = _runtime()

    try:
        arena = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        memory = onnxruntime.OrtMemoryInfo("Cpu", arena, 0, onnxruntime.OrtMemType.DEFAULT)
        # No limit, and for the rest what ONNX Runtime thinks best.
        settings = onnxruntime.OrtArenaCfg(0, -1, -1, -1)
        onnxruntime.create_and_register_allocator(memory, settings)
    except Exception:  # noqa: BLE001 (the program that we are in has one already)
        return False
    return True


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """ONNX Runtime takes writable contiguous arrays only; views of a bundle are read-only."""
    return np.array(array, order="C")


def _external_names(raw: bytes) -> tuple[str, ...]:
    from onnx import ModelProto, TensorProto  # noqa: PLC0415

    return tuple(
        tensor.name
        for tensor in ModelProto.FromString(raw).graph.initializer
        if tensor.data_location == TensorProto.EXTERNAL
    )


def _runtime() -> Any:
    """Import ONNX Runtime with its telemetry off: what is predicted stays on this machine.

    Its Linux builds otherwise report on model files, and warn on stderr where the home folder
    cannot be written. Whoever sets the variable decides.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: PLC0415 (0.1 s; only a prediction needs it)

    return onnxruntime

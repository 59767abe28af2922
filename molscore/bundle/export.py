"""From a torch model to the ONNX skeleton a bundle carries.

The skeleton is one expert's graph without its weights: each weight is an external initialiser
under its state-dict name, to be injected per expert. While tracing, the weights are inputs of
the graph. Were they constants, the exporter would compute with them: it merges two equal
tensors (biases still at zero), drops a factor that happens to be one and folds a learned step
size into a number, and the graph would be wrong for the next expert.
"""

import contextlib
import copy
import logging
import math
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from molscore.bundle.onnx_session import open_session
from molscore.bundle.signature import OPSET, OUTPUT, WEIGHTS_LOCATION, input_ports
from molscore.bundle.tracing import CHECKED_SIZES, TOLERANCE, TRACED_SIZES, example_arrays
from molscore.chem.packed import GraphArrays
from molscore.errors import ExportError

if TYPE_CHECKING:
    from onnx import ModelProto

    from molscore.nn.model import PropertyModel

MAX_INLINE: Final = 64
"""Elements of a float constant that may stay in the graph."""


def export_skeleton(model: "PropertyModel", scratch: Path | None = None) -> bytes:
    """Export one expert's graph without its weights, and check it against torch.

    Args:
        model: any expert; its own weights and mode are left as they are.
        scratch: a folder for the exporter's temporary files; the system's by default.

    Returns:
        The ONNX model (opset 18), its weights external under their state-dict names.

    Raises:
        ExportError: when torch cannot export the model, a size was frozen while tracing, a
            weight cannot be found in the graph, or the graph and torch disagree on sizes that
            were not traced.
    """
    n_descriptors = model.n_descriptors
    twin = _distinct_copy(model)
    with _inductor_folder(scratch):
        proto = _trace(twin, n_descriptors)
    _strip(proto)
    _name_sizes(proto, n_descriptors)
    _externalise(proto, n_descriptors)
    raw: bytes = proto.SerializeToString(deterministic=True)
    for expert in (model, twin):
        _compare(expert, raw, n_descriptors)
    return raw


def _distinct_copy(model: "PropertyModel") -> "PropertyModel":
    """Return a copy on the CPU, in evaluation mode, with random weights.

    They differ from each other, so that a graph which mixes them up gives another answer, and
    are small enough that no plan amplifies rounding.
    """
    import torch  # noqa: PLC0415 (never on the way to a prediction)

    twin = copy.deepcopy(model).cpu().eval().requires_grad_(requires_grad=False)
    generator = torch.Generator().manual_seed(0)
    for tensor in twin.state_dict().values():
        if tensor.is_floating_point():
            fan_in = tensor.shape[-1] if tensor.dim() > 1 else 4
            tensor.copy_(torch.randn(tensor.shape, generator=generator) / (2 * fan_in**0.5))
    return twin


def _trace(model: "PropertyModel", n_descriptors: int) -> "ModelProto":
    import torch  # noqa: PLC0415
    from torch.export import Dim  # noqa: PLC0415

    from molscore.nn.batch import GraphBatch  # noqa: PLC0415

    ports = input_ports(n_descriptors)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    class Flat(torch.nn.Module):
        """The model as a function of graph arrays and weights, all of them positional."""

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            state = dict(zip(weights, tensors[len(ports) :], strict=True))
            batch = GraphBatch(*tensors[: len(ports)])
            result: torch.Tensor = torch.func.functional_call(model, state, (batch,))
            return result

    batch, descriptors = example_arrays(TRACED_SIZES, n_descriptors)
    sizes = {"atoms": Dim("atoms"), "graphs": Dim("graphs"), "directed_bonds": 2 * Dim("bonds")}
    arrays = [torch.from_numpy(a) for a in _inputs(batch, descriptors).values()]
    shapes: list[dict[int, Any]] = [
        {axis: sizes[size] for axis, size in enumerate(port.shape) if isinstance(size, str)}
        for port in ports
    ]
    shapes += [{} for _ in weights]
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                Flat().eval(),
                (*arrays, *weights.values()),
                dynamo=True,
                opset_version=OPSET,
                dynamic_shapes=(tuple(shapes),),
                input_names=[*(port.name for port in ports), *weights],
                output_names=[OUTPUT],
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # the exporter raises many kinds, its own and torch's
        first = str(error).strip().splitlines()
        raise ExportError(
            f"torch cannot export this model: {first[0] if first else error}"
        ) from error
    if program is None:
        raise ExportError("torch gave no graph for this model")
    return program.model_proto


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks (missing torchvision, axis names) off stderr."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _inductor_folder(scratch: Path | None) -> Iterator[None]:
    """Let torch's compiler, which the exporter starts, keep its cache where it is removed.

    Without a temporary folder it would leave one in the working directory.
    """
    name = "TORCHINDUCTOR_CACHE_DIR"
    if name in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(
        prefix="molscore-", dir=scratch, ignore_cleanup_errors=True
    ) as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            del os.environ[name]


def _strip(proto: "ModelProto") -> None:
    """Remove what does not compute: stack traces with local paths, comments, inferred shapes."""
    graph = proto.graph
    del proto.metadata_props[:]
    del graph.metadata_props[:]
    del graph.value_info[:]
    graph.ClearField("doc_string")
    graph.name = "expert"
    proto.producer_name, proto.producer_version = "molscore", ""
    proto.ClearField("doc_string")
    for items in (graph.node, graph.input, graph.output, graph.initializer):
        for item in items:
            del item.metadata_props[:]
            item.ClearField("doc_string")
    for node in graph.node:
        for attribute in node.attribute:
            attribute.ClearField("doc_string")


def _name_sizes(proto: "ModelProto", n_descriptors: int) -> None:
    """Give the sizes that vary their plain names; refuse a graph in which one was frozen."""
    values = {value.name: value for value in proto.graph.input}
    for port in input_ports(n_descriptors):
        if port.name not in values:
            raise ExportError(f"input {port.name!r} is gone from the exported graph")
        dims = values[port.name].type.tensor_type.shape.dim
        for axis, size in enumerate(port.shape):
            if isinstance(size, str) != bool(dims[axis].dim_param):
                raise ExportError(f"axis {axis} of input {port.name!r} was frozen while tracing")
            if isinstance(size, str):
                dims[axis].dim_param = size
    for axis in proto.graph.output[0].type.tensor_type.shape.dim[:1]:
        if not axis.dim_param:
            raise ExportError("the number of molecules was frozen while tracing")
        axis.dim_param = "graphs"


def _externalise(proto: "ModelProto", n_descriptors: int) -> None:
    """Turn the inputs that are weights into external initialisers; drop those not used."""
    from onnx import TensorProto  # noqa: PLC0415

    graph = proto.graph
    for tensor in graph.initializer:
        if tensor.data_type != TensorProto.INT64 and math.prod(tensor.dims) > MAX_INLINE:
            raise ExportError(
                f"constant {tensor.name!r} of shape {list(tensor.dims)} in the exported graph: "
                "a tensor that is in no state dict"
            )
    ports = {port.name for port in input_ports(n_descriptors)}
    used = {name for node in graph.node for name in node.input}
    weights = [value for value in graph.input if value.name not in ports]
    inputs = [value for value in graph.input if value.name in ports]
    for value in weights:
        if value.name in used:
            tensor = graph.initializer.add(
                name=value.name,
                data_type=value.type.tensor_type.elem_type,
                dims=[dim.dim_value for dim in value.type.tensor_type.shape.dim],
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value=WEIGHTS_LOCATION)
    del graph.input[:]
    graph.input.extend(inputs)


def _compare(model: "PropertyModel", raw: bytes, n_descriptors: int) -> None:
    """Run graph and torch on sizes that were not traced."""
    import torch  # noqa: PLC0415

    from molscore.nn.batch import GraphBatch  # noqa: PLC0415

    reference = copy.deepcopy(model).cpu().eval()
    weights = {name: t.numpy() for name, t in reference.state_dict().items()}
    session = open_session(raw, weights)
    for seed, sizes in enumerate(CHECKED_SIZES, start=1):
        batch, descriptors = example_arrays(sizes, n_descriptors, seed=seed)
        with torch.no_grad():
            wanted = reference(GraphBatch.from_arrays(batch, descriptors)).numpy()
        found = session.run(_inputs(batch, descriptors))
        bound = TOLERANCE * max(1.0, float(np.abs(wanted).max()))
        if found.shape != wanted.shape or not np.abs(found - wanted).max() <= bound:
            raise ExportError(
                f"the exported graph and torch disagree on molecules of {sizes[:4]} atoms: "
                f"{_worst(found, wanted)}"
            )


def _worst(found: Any, wanted: Any) -> str:
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    return f"largest difference {np.abs(found - wanted).max():.2g}"


def _inputs(batch: GraphArrays, descriptors: Any | None) -> dict[str, Any]:
    inputs: dict[str, Any] = batch._asdict()
    if descriptors is not None:
        inputs["descriptors"] = descriptors
    return inputs

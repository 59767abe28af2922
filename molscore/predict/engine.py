"""What runs a model: ONNX Runtime (the default) or torch."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.onnx_session import OnnxSession, open_session
from molscore.bundle.reader import Bundle
from molscore.bundle.sharing import n_rounds, sharing_graph, sharing_inputs
from molscore.bundle.tracing import CHECKED_SIZES, TOLERANCE, example_arrays
from molscore.chem.packed import GraphArrays, join_batches
from molscore.chem.surroundings import share
from molscore.errors import BundleError, ConfigError, MolscoreError
from molscore.nn.devices import DEVICES, resolve_device

if TYPE_CHECKING:
    import torch

ENGINES: Final = ("onnx", "torch")

Outputs = NDArray[np.float32]
Batch = tuple[GraphArrays, NDArray[np.float32] | None]
"""At least one molecule, and descriptors float32 [n_experts, n_graphs, n_descriptors], scaled for
each expert; None if the model takes none."""


Run = Callable[[Sequence[Batch]], list[Outputs]]

SHARED_FROM: Final = 128
"""Fewer molecules than this are run as they are: the graphs that share would have to be opened."""

_LEAST_WIDTH: Final = 256
"""Width of all experts together from which on sorting the bonds costs less than it saves."""

_GROUP_ATOMS: Final = 10_240
"""Most atoms of the batches that share: a little less than a chunk of drug-like molecules has, so
that the largest group, and with it the memory, is met in the first chunks."""

_FULL_WIDTH: Final = 5 * 128
"""Each session keeps its buffers, some 90 MB for so many atoms at width 128: where the experts
together are wider than this, fewer atoms share."""

OUT_OF_MEMORY: Final = (
    "memory ran out; use fewer --workers. A run with --output can be gone on with by --resume"
)


class Engine(Protocol):
    """All experts of a bundle, ready to run."""

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        """Return the raw outputs of each batch, float32 [n_experts, n_graphs, n_targets]."""
        ...


class OnnxEngine:
    """One single-threaded ONNX Runtime session per expert; torch is never imported.

    Args:
        bundle: the model.

    Raises:
        BundleError: when ONNX Runtime refuses the graph.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._sessions = [_open_expert(bundle, i) for i in range(bundle.manifest.n_experts)]
        self._bundle = bundle
        self._sharing: SharingEngine | None = None
        self._may_share = SharingEngine.pays(bundle)

    def run(self, batches: Sequence[Batch]) -> list[Outputs]:
        """See `Engine.run`."""
        if self._may_share and sum(len(arrays.n_atoms) for arrays, _ in batches) >= SHARED_FROM:
            if self._sharing is None:
                self._sharing = self._open_sharing()
                self._may_share = self._sharing is not None
            if self._sharing is not None:
                return self._sharing.run(batches, self._run_each)
        return self._run_each(batches)

    def _open_sharing(self) -> "SharingEngine | None":
        """Return the graphs that share, or None where they are not those of the bundle."""
        try:
            sharing = SharingEngine(self._bundle)
            return sharing if sharing.agrees(self._run_each) else None
        except Exception as error:  # noqa: BLE001 (whatever is odd about a bundle, its graph runs)
            if is_out_of_memory(error):  # the last bits are not to depend on that
                raise MolscoreError(OUT_OF_MEMORY) from None
            return None

    def _run_each(self, batches: Sequence[Batch]) -> list[Outputs]:
        """Run the graph of the bundle."""
        feeds: list[dict[str, NDArray[Any]]] = [arrays._asdict() for arrays, _ in batches]
        outputs: list[list[Outputs]] = [[] for _ in batches]
        # Expert by expert: the weights and buffers of one session fit a core's cache, not of all.
        for index, session in enumerate(self._sessions):
            for feed, (_, descriptors), found in zip(feeds, batches, outputs, strict=True):
                if descriptors is not None:
                    feed["descriptors"] = descriptors[index]
                found.append(session.run(feed))
        return [np.stack(found) for found in outputs]


class SharingEngine:
    """All experts of a DMPNN as graphs that compute equal surroundings once.

    A quarter of the products is left in a chunk of drug-like molecules. The graphs are made here
    from the configuration, so `agrees` is to be asked first.

    Args:
        bundle: one that `pays`.
    """

    def __init__(self, bundle: Bundle) -> None:
        model = bundle.manifest.model
        self._width = model.width
        self._most_atoms = most_atoms(bundle.manifest.n_experts, model.width)
        self._rounds = n_rounds(model) or 0
        experts = [bundle.expert_weights(i) for i in range(bundle.manifest.n_experts)]
        graph = sharing_graph(model, experts[0])
        self._sessions = [open_session(graph, weights) for weights in experts]

    @staticmethod
    def pays(bundle: Bundle) -> bool:
        """Whether there is such a graph, and enough work to share."""
        model, n_experts = bundle.manifest.model, bundle.manifest.n_experts
        return n_rounds(model) is not None and n_experts * model.width >= _LEAST_WIDTH

    def agrees(self, reference: "Run") -> bool:
        """Whether made-up molecules get the values that the graph of the bundle gives them."""
        batches = [
            (example_arrays(sizes, seed=seed)[0], None) for seed, sizes in enumerate(CHECKED_SIZES)
        ]
        runs = (reference(batches), [self.run([batch], reference)[0] for batch in batches])
        wanted, found = (np.concatenate(run, axis=1) for run in runs)
        return found.shape == wanted.shape and are_close(found, wanted)

    def run(self, batches: Sequence[Batch], otherwise: "Run") -> list[Outputs]:
        """Run batches, several at a time; `otherwise` runs those that cannot be shared."""
        arrays = [batch for batch, _ in batches]
        outputs: dict[int, Outputs] = {}
        feeds: list[tuple[list[int], dict[str, NDArray[Any]]]] = []
        for group in _groups(arrays, self._most_atoms):
            joined = join_batches([arrays[i] for i in group])
            shared = share(joined, self._rounds)
            if shared is None:
                of_group = otherwise([batches[i] for i in group])
                outputs |= dict(zip(group, of_group, strict=True))
            else:
                feeds.append((group, sharing_inputs(shared, joined, self._width)))
        found = [[session.run(feed) for _, feed in feeds] for session in self._sessions]
        for k, (group, _) in enumerate(feeds):
            whole = np.stack([of_expert[k] for of_expert in found])
            ends = np.cumsum([len(arrays[i].n_atoms) for i in group])[:-1]
            outputs |= dict(zip(group, np.split(whole, ends, axis=1), strict=True))
        return [outputs[i] for i in range(len(batches))]


def most_atoms(n_experts: int, width: int) -> int:
    """Return how many atoms may share, so that memory stays the same for any model."""
    return max(1, _GROUP_ATOMS * _FULL_WIDTH // max(_FULL_WIDTH, n_experts * width))


def are_close(found: Outputs, wanted: Outputs) -> bool:
    """Whether outputs [n_experts, n, n_targets] are the same but for rounding.

    Each expert's and target's values are measured by how they vary: a target may be of any size.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        spread = np.ptp(wanted, axis=1, keepdims=True)
        rounding = 8 * np.finfo(np.float32).eps * np.abs(wanted).max(axis=1, keepdims=True)
        return bool((np.abs(found - wanted) <= TOLERANCE * spread + rounding).all())


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of an engine says that there is no memory."""
    return isinstance(error, MemoryError) or "alloc" in str(error).lower()


def _groups(batches: Sequence[GraphArrays], most_atoms: int) -> Iterator[list[int]]:
    """Cut batches into groups of at most so many atoms, or a batch alone."""
    group: list[int] = []
    n_atoms = 0
    for i, batch in enumerate(batches):
        n = len(batch.atom_codes)
        if group and n_atoms + n > most_atoms:
            yield group
            group, n_atoms = [], 0
        group.append(i)
        n_atoms += n
    yield group


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


def _open_expert(bundle: Bundle, index: int) -> OnnxSession:
    weights = bundle.expert_weights(index)
    try:
        return open_session(bundle.onnx, weights, bundle.onnx_weights)
    except Exception as error:  # ONNX Runtime's exceptions share no other base
        raise BundleError(
            f"{bundle.where}: ONNX Runtime refuses the graph: {_one_line(error)}"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]

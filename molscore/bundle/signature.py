"""What the graph of an expert takes and gives; the one place that names and orders it."""

from dataclasses import dataclass
from typing import Final

from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES

OUTPUT: Final = "prediction"
WEIGHTS_LOCATION: Final = "weights.safetensors"
OPSET: Final = 18
IR_VERSION: Final = 10

Shape = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: name, numpy dtype name, and shape with names for what varies."""

    name: str
    dtype: str
    shape: Shape


GRAPH_INPUTS: Final[tuple[Port, ...]] = (
    Port("atom_codes", "int64", ("atoms", len(ATOM_FEATURES))),
    Port("bond_codes", "int64", ("directed_bonds", len(BOND_FEATURES))),
    Port("edge_index", "int64", (2, "directed_bonds")),
    Port("graph_id", "int64", ("atoms",)),
    Port("n_atoms", "int64", ("graphs",)),
)


def input_ports(n_descriptors: int) -> tuple[Port, ...]:
    """Return the inputs of an expert; `descriptors` comes last and only if it takes any."""
    if not n_descriptors:
        return GRAPH_INPUTS
    return (*GRAPH_INPUTS, Port("descriptors", "float32", ("graphs", n_descriptors)))


def output_port(n_targets: int) -> Port:
    """Return the output of an expert: values in transformed units, or logits."""
    return Port(OUTPUT, "float32", ("graphs", n_targets))

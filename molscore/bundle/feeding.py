"""How another program feeds the stand-alone graph: tables of codes and worked examples.

The JSON is written for a reader who has a toolkit that parses SMILES, and nothing of molscore.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.onnx_session import open_standalone
from molscore.bundle.reader import Bundle
from molscore.bundle.signature import Port
from molscore.bundle.standalone import standalone_inputs, standalone_outputs
from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, Feature
from molscore.chem.graph import featurize_many
from molscore.chem.parse import Molecule, ParseFailure, parse_smiles
from molscore.data.targets import Target
from molscore.errors import ExportError

FORMAT: Final = "molscore-standalone/1"

EXAMPLES: Final[tuple[tuple[str, ...], ...]] = (
    (r"C/C=C/C(=O)N[C@@H](C)c1ccccc1",),
    ("O", "CC(=O)[O-].[Na+]", "c1ccc2[nH]ccc2c1"),
)
"""One molecule with every kind of feature, and a batch that starts without a bond."""

ATOM_MEANING: Final[dict[str, str]] = {
    "element": "symbol of the element",
    "group": "IUPAC group of the element, 1 to 18; other for the f-block",
    "period": "period of the element, 1 to 7",
    "degree": "number of bonds to atoms of the graph (hydrogens are not atoms of the graph)",
    "charge": "formal charge",
    "hydrogens": "number of hydrogens on the atom, implicit and explicit together",
    "bonding": (
        "pattern of the bond orders around the atom, after aromaticity: single (only single "
        "bonds or none), double (one double bond), two-double, triple (one triple bond), "
        "aromatic-2 and aromatic-3 (that many aromatic bonds), aromatic-double (two aromatic "
        "bonds and a double bond), dative (any bond that is none of these orders); single "
        "bonds beside them do not count, any other pattern is other"
    ),
    "ring": "size of the smallest ring (of the SSSR, symmetrised) through the atom, 0 without",
    "cip": "CIP label of a tetrahedral centre marked in the SMILES, by RDKit's rdCIPLabeler (the "
    "new algorithm); other if it has no label",
}
BOND_MEANING: Final[dict[str, str]] = {
    "order": "bond order after aromaticity; other for any other kind",
    "ring": "size of the smallest ring (of the SSSR, symmetrised) through the bond, 0 without",
    "stereo": "CIP label of a double bond marked in the SMILES, by RDKit's rdCIPLabeler; other if "
    "it has no label",
}
INPUT_MEANING: Final[dict[str, str]] = {
    "atom_codes": "one row per heavy atom; column f holds the code of atom_features[f]",
    "bond_codes": (
        "two rows per bond, one for each direction, next to each other: rows 2k and 2k+1 "
        "belong to bond k and are equal; column f holds the code of bond_features[f]"
    ),
    "edge_index": (
        "the two atoms of every directed bond, in the order of bond_codes: row 0 the atom it "
        "leaves, row 1 the atom it enters; column 2k+1 is column 2k turned round. Atoms are "
        "counted over the whole batch"
    ),
    "graph_id": "the molecule of every atom: 0 for the first, and so on, ascending",
    "n_atoms": "the number of atoms of every molecule",
    "descriptors": (
        "values as RDKit computes them, unscaled, in the order of descriptor_names; NaN where "
        "undefined"
    ),
}


def describe_feeding(bundle: Bundle, onnx: bytes) -> dict[str, Any]:
    """Return the JSON that goes beside a stand-alone graph.

    Args:
        bundle: the model.
        onnx: its graph, from `compose_standalone`.

    Raises:
        ExportError: when an example cannot be run.
    """
    manifest = bundle.manifest
    inputs = standalone_inputs(manifest)
    # A graph that takes descriptors alone has no codes to explain.
    takes = {port.name for port in inputs}
    atom_features = ATOM_FEATURES if "atom_codes" in takes else ()
    bond_features = BOND_FEATURES if "bond_codes" in takes else ()
    sizes = {size for port in inputs for size in port.shape}
    return {
        "format": FORMAT,
        "model": {
            "name": manifest.name,
            "sha256": bundle.sha256,
            "created": manifest.created,
            "molscore_version": manifest.molscore_version,
            "n_experts": manifest.n_experts,
        },
        "onnx_sha256": hashlib.sha256(onnx).hexdigest(),
        "targets": [_describe_target(target) for target in manifest.targets],
        "inputs": [_describe_port(port, INPUT_MEANING[port.name]) for port in inputs],
        "outputs": [
            _describe_port(port, _OUTPUT_MEANING[port.name])
            for port in standalone_outputs(manifest.n_experts, manifest.n_targets)
        ],
        "sizes": {name: text for name, text in _SIZE_MEANING.items() if name in sizes},
        "standardisation": manifest.policy.to_dict(),
        "standardisation_note": _STANDARDISATION,
        "rdkit_version": manifest.rdkit_version,
        "featurizer_version": manifest.featurizer_version,
        "atom_features": [_describe_feature(f, ATOM_MEANING) for f in atom_features],
        "bond_features": [_describe_feature(f, BOND_MEANING) for f in bond_features],
        "descriptor_names": list(manifest.descriptor_names),
        "examples": [_example(bundle, onnx, smiles) for smiles in EXAMPLES],
    }


_SIZE_MEANING: Final[dict[str, str]] = {
    "graphs": "molecules in the batch, at least 1",
    "atoms": "atoms of all molecules together",
    "directed_bonds": "twice the number of bonds; 0 is allowed, with arrays of no rows",
}
_OUTPUT_MEANING: Final[dict[str, str]] = {
    "mean": "prediction: mean of the experts, one column per target, in the target's unit; "
    "for a classification target the probability of classes[1]",
    "sd": "standard deviation of the experts (n - 1 in the denominator): their spread, not an "
    "error bar",
}
_STANDARDISATION: Final = (
    "Hydrogens are folded into their heavy atoms, isotopes and atom maps are ignored. salts: "
    "whole keeps all fragments (they are one molecule of the batch), parent keeps the largest "
    "one with carbon. neutralize: RDKit Uncharger. stereo: drop removes all stereo. tautomers: "
    "canonical applies RDKit's TautomerEnumerator. Aromaticity is RDKit's."
)


def _describe_target(target: Target) -> dict[str, Any]:
    text = target.to_dict()
    # The graph undoes the transform; a reader of the file must not do it again.
    del text["transform"]
    return text


def _describe_port(port: Port, meaning: str) -> dict[str, Any]:
    return {
        "name": port.name,
        "dtype": port.dtype,
        "shape": list(port.shape),
        "meaning": meaning,
    }


def _describe_feature(feature: Feature, meanings: dict[str, str]) -> dict[str, Any]:
    return {
        "name": feature.name,
        "meaning": meanings[feature.name],
        "codes": {label: code for code, label in enumerate(feature.labels)},
        "other": feature.other,
    }


def build_inputs(bundle: Bundle, smiles: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the inputs of the stand-alone graph for some molecules.

    Raises:
        ExportError: when one of them cannot be read under the model's policy.
    """
    molecules: list[Molecule] = []
    for row, text in enumerate(smiles):
        molecule = parse_smiles(text, bundle.manifest.policy, row)
        if isinstance(molecule, ParseFailure):
            raise ExportError(f"{text!r} cannot be read: {molecule.reason}")
        molecules.append(molecule)
    packed = featurize_many(molecules)
    inputs: dict[str, NDArray[Any]] = dict(packed.batch(np.arange(len(packed)))._asdict())
    if bundle.manifest.descriptor_names:
        from molscore.chem.descriptors import compute_descriptors  # noqa: PLC0415 (start-up)

        inputs["descriptors"] = compute_descriptors(molecules, bundle.manifest.descriptor_names)
    return {port.name: inputs[port.name] for port in standalone_inputs(bundle.manifest)}


def _example(bundle: Bundle, onnx: bytes, smiles: Sequence[str]) -> dict[str, Any]:
    inputs = build_inputs(bundle, smiles)
    outputs = open_standalone(onnx)(inputs)
    return {
        "smiles": list(smiles),
        "inputs": {name: _plain(array) for name, array in inputs.items()},
        "outputs": {name: _plain(array) for name, array in outputs.items()},
    }


def _plain(array: NDArray[Any]) -> Any:
    """Return nested lists, with null for what is not a number."""

    def finite(value: Any) -> Any:
        if isinstance(value, list):
            return [finite(v) for v in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return finite(array.tolist())

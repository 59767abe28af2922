"""Write a model for other programs: one ONNX graph, and a JSON that says how to feed it."""

import json
import logging
from pathlib import Path
from typing import Any, Final

from molscore.bundle.feeding import describe_feeding
from molscore.bundle.halving import PROBES, halve
from molscore.bundle.reader import load_bundle
from molscore.bundle.standalone import compose_standalone
from molscore.data.outputs import Output, refuse_inputs
from molscore.errors import ConfigError

LOGGER: Final = logging.getLogger(__name__)


def export(
    model: str | Path, output: str | Path, *, half: bool = False, force: bool = False
) -> tuple[Path, Path]:
    """Write all experts of a bundle as one ONNX graph with a JSON beside it.

    Args:
        model: path of a `.molscore` file.
        output: the `.onnx` file; the JSON gets the same name ending in `.json`.
        half: store the weights of the networks in half precision, for half the file. What that
            changes is measured on a few molecules, logged and written to the JSON.
        force: replace existing files.

    Returns:
        The paths of the graph and of the JSON.

    Raises:
        BundleError: when the model cannot be used.
        ConfigError: when `output` does not end in `.onnx`, a file is in the way, or a model of
            trees is to be stored in half precision.
        ExportError: when the graph is not valid or its examples cannot be run.
    """
    graph_path = Path(output)
    if graph_path.suffix.lower() != ".onnx":
        raise ConfigError(f"--output {graph_path}: the name of the graph must end in .onnx")
    text_path = graph_path.with_suffix(".json")
    refuse_inputs(graph_path, model=model)
    bundle = load_bundle(model)
    graph_output = Output(graph_path, force=force)
    try:
        text_output = Output(text_path, force=force)
        try:
            graph = compose_standalone(bundle)
            about: dict[str, Any] = {"dtype": "float32"}
            if half:
                graph, changes = halve(bundle, graph)
                about = {
                    "dtype": "float16",
                    "meaning": "largest change of a mean, by target and in its unit, that the "
                    f"rounding of the weights makes among {len(PROBES)} molecules",
                    "largest_change": changes,
                }
                said = ", ".join(f"{name} by at most {x:.2g}" for name, x in changes.items())
                LOGGER.info(
                    "half precision changes the means of %d built-in molecules: %s; others may "
                    "change more",
                    len(PROBES),
                    said,
                )
            feeding = describe_feeding(bundle, graph) | {"weights": about}
            text = json.dumps(feeding, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
            graph_output.write(graph)
            text_output.write(text.encode())
            graph_output.commit()
            text_output.commit()
        except BaseException:
            text_output.discard()
            raise
    except BaseException:
        graph_output.discard()
        raise
    return graph_path, text_path

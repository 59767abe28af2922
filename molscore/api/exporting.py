"""Write a model for other programs: one ONNX graph, and a JSON that says how to feed it."""

import json
from pathlib import Path

from molscore.bundle.feeding import describe_feeding
from molscore.bundle.reader import load_bundle
from molscore.bundle.standalone import compose_standalone
from molscore.data.outputs import Output, refuse_inputs
from molscore.errors import ConfigError


def export(model: str | Path, output: str | Path, *, force: bool = False) -> tuple[Path, Path]:
    """Write all experts of a bundle as one ONNX graph with a JSON beside it.

    Args:
        model: path of a `.molscore` file.
        output: the `.onnx` file; the JSON gets the same name ending in `.json`.
        force: replace existing files.

    Returns:
        The paths of the graph and of the JSON.

    Raises:
        BundleError: when the model cannot be used.
        ConfigError: when `output` does not end in `.onnx`, or a file is in the way.
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
            feeding = describe_feeding(bundle, graph)
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

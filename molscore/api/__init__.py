"""The Python surface: train, distill, predict, evaluate, export, inspect, featurize.

The command line is a thin layer over these functions; `molscore.train`, `molscore.distill`,
`molscore.load`, `molscore.evaluate` and `molscore.export` are the same objects.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from molscore.api.distillation import distill
    from molscore.api.evaluation import Evaluation, evaluate
    from molscore.api.exporting import export
    from molscore.api.featurization import featurize_table
    from molscore.api.inspection import describe, list_models
    from molscore.api.prediction import predict_table
    from molscore.api.predictor import Predictor, load
    from molscore.api.training import train

__all__ = [
    "Evaluation",
    "Predictor",
    "describe",
    "distill",
    "evaluate",
    "export",
    "featurize_table",
    "list_models",
    "load",
    "predict_table",
    "train",
]

# Imported on first use: each of them costs start-up that the others do not need.
_HOMES: Final[dict[str, str]] = {
    "Evaluation": "evaluation",
    "Predictor": "predictor",
    "describe": "inspection",
    "distill": "distillation",
    "evaluate": "evaluation",
    "export": "exporting",
    "featurize_table": "featurization",
    "list_models": "inspection",
    "load": "predictor",
    "predict_table": "prediction",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"molscore.api.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'molscore.api' has no attribute {name!r}")

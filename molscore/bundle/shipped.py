"""The models that come with the package."""

from pathlib import Path
from typing import Final

import molscore

DEFAULT_MODEL: Final = "aqsol"
"""What predicts when no model is named."""

SUFFIX: Final = ".molscore"


def shipped_folder() -> Path:
    """Return where they lie: in the installed package, or beside it in a checkout."""
    package = Path(molscore.__file__).resolve().parent
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


def shipped_models() -> dict[str, Path]:
    """Return name -> file of every model that comes with the package, the default first."""
    found = {path.stem: path for path in sorted(shipped_folder().glob(f"*{SUFFIX}"))}
    return dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT_MODEL))


def find_model(model: str | Path) -> Path:
    """Return the file of a model that is given by path, or by the name of a shipped one.

    The name of a shipped one is its own: nothing in the working directory can take its place.
    """
    return shipped_models().get(str(model), Path(model))

"""The models that come with the package."""

from pathlib import Path
from typing import Final

import molscore
from molscore.errors import BundleError

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

    A file of that name comes first.

    Raises:
        BundleError: when there is neither.
    """
    path = Path(model)
    # A name is what neither folder nor suffix is part of.
    if path.exists() or path.name != str(model) or path.suffix:
        return path
    shipped = shipped_models()
    if path.name in shipped:
        return shipped[path.name]
    names = ", ".join(shipped) or "none"
    raise BundleError(
        f"no such model: {model}; give a {SUFFIX} file, or the name of one that comes with "
        f"molscore ({names})"
    )

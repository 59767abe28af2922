"""molscore: molecular property prediction from SMILES with SCORE graph networks.

    import molscore

    molscore.train("esol.csv", output="esol.molscore")
    molscore.load("esol.molscore").predict(["CCO", "c1ccccc1O"])

Everything here is imported on first use, so that `import molscore` costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from molscore.api import Predictor, distill, evaluate, export, load, train

__all__ = ["Predictor", "__version__", "distill", "evaluate", "export", "load", "train"]


class _CallablePackage(ModuleType):
    # The folder `molscore.train`, which can also be called: `molscore.train(...)`. What `help`
    # and `inspect.signature` say is read off the function, and only when they ask.

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Train a model, see `molscore.api.train`."""
        return import_module("molscore.api").train(*args, **options)

    @property
    def __signature__(self) -> Any:
        return import_module("inspect").signature(import_module("molscore.api").train)

    @property
    def __doc__(self) -> str:  # type: ignore[override] # a module has a text of its own
        summary, _, rest = (import_module("molscore.api").train.__doc__ or "").partition("\n")
        signature = self.__signature__
        table, *options = signature.parameters.values()  # all options are keywords
        arguments = "".join(f"\n        {p}," for p in (table, "*", *options))
        returned = str(signature.return_annotation).strip("'\"")
        return f"{summary}\n\n    molscore.train({arguments}\n    ) -> {returned}\n{rest}"


class _Package(ModuleType):
    """This module, which makes its subpackage `train` callable.

    Python binds a subpackage to its parent whenever it is first imported, and that would hide
    a function of the same name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "train" and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("molscore")
    if name == "train":
        return import_module("molscore.train")
    if name in __all__:
        return getattr(import_module("molscore.api"), name)
    raise AttributeError(f"module 'molscore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

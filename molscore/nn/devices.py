"""Which device torch computes on."""

from typing import Final

from molscore.errors import ConfigError

DEVICES: Final = ("auto", "cpu", "cuda", "mps")


def resolve_device(name: str) -> str:
    """Return the torch device `name` stands for; `auto` is a GPU where torch finds one.

    Imports torch unless the answer is plain.

    Raises:
        ConfigError: when the device is unknown, or not here.
    """
    if name == "cpu":
        return name
    if name not in DEVICES:
        raise ConfigError(f"unknown device {name!r}; expected one of {', '.join(DEVICES)}")
    import torch  # noqa: PLC0415 (seconds)

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        # Not mps: on it the same seed is not known to give the same model.
        return "cuda" if there["cuda"] else "cpu"
    if not there[name]:
        raise ConfigError(f"device {name!r} is not available here; use --device auto or cpu")
    return name

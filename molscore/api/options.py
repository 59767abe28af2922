"""Keyword options of the Python surface, sorted into the configurations that own them."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from molscore.config import Config
from molscore.errors import ConfigError


def build_configs(options: Mapping[str, Any], *configs: type[Config]) -> list[Any]:
    """Build one configuration of each class from flat keyword options.

    Args:
        options: option name -> value, named like the fields of `configs` (and like the
            options of the command line, with underscores).
        configs: classes without a field name in common.

    Returns:
        The configurations, in the order of `configs`.

    Raises:
        ConfigError: when an option belongs to none of them, or has a value it cannot have.
    """
    owners = {f.name: config for config in configs for f in dataclasses.fields(config)}
    for name in options:
        if name not in owners:
            close = difflib.get_close_matches(name, owners, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(owners)}"
            raise ConfigError(f"unknown option {name!r}; {hint}")
    return [
        config.from_dict({k: v for k, v in options.items() if owners[k] is config}, where="option")
        for config in configs
    ]

"""The mechanism every configuration shares: frozen, keyword-only, checked, stored as JSON.

Each part of molscore owns its own configuration class beside its code; the defaults live in
those classes alone and the command line reads them from there.
"""

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, Self

from molscore.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of all configurations.

    Subclasses are frozen keyword-only dataclasses that check their values in `__post_init__`
    and raise `ConfigError`. Fields are JSON scalars, tuples of them, or other configurations.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as JSON-ready built-in types."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, where: str = "configuration") -> Self:
        """Rebuild a configuration from `to_dict` output.

        Args:
            data: JSON object. Missing keys take their defaults.
            where: what to call the source in an error message.

        Raises:
            ConfigError: on an unknown key or a value of the wrong type.
        """
        if not isinstance(data, dict):
            raise ConfigError(f"{where}: expected a JSON object, got {type(data).__name__}")
        fields = {f.name: f for f in dataclasses.fields(cls)}
        unknown = sorted(set(data) - set(fields))
        if unknown:
            raise ConfigError(
                f"{where}: unknown key {unknown[0]!r}; known keys are {', '.join(fields)}"
            )
        hints = typing.get_type_hints(cls)
        values = {k: _typed(v, hints[k], f"{where}.{k}") for k, v in data.items()}
        try:
            return cls(**values)
        except TypeError as error:
            raise ConfigError(f"{where}: {error}") from None

    @classmethod
    def default(cls, name: str) -> Any:
        """Return the default of field `name`, the single place a default is written."""
        for f in dataclasses.fields(cls):
            if f.name == name:
                if f.default is not dataclasses.MISSING:
                    return f.default
                if f.default_factory is not dataclasses.MISSING:
                    return f.default_factory()
        raise KeyError(name)


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def _typed(value: Any, hint: Any, where: str) -> Any:  # noqa: PLR0911 (one a kind of hint)
    """Check `value` against a field's type hint; JSON lists become tuples."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in args:
            return None
        return _typed(value, next(a for a in args if a is not type(None)), where)
    if origin is typing.Literal:
        if value not in args:
            raise ConfigError(f"{where}: {value!r} is not one of {', '.join(map(repr, args))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, got {type(value).__name__}")
        return tuple(_typed(v, args[0], f"{where}[{i}]") for i, v in enumerate(value))
    if isinstance(hint, type) and issubclass(hint, Config):
        return value if isinstance(value, hint) else hint.from_dict(value, where=where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (
        not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)
    ):
        raise ConfigError(
            f"{where}: expected {hint.__name__}, got {type(value).__name__} {value!r}"
        )
    return value

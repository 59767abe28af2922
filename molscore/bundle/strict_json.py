"""JSON from files that are not trusted: bounded in size, depth and number, and unambiguous.

Python's parser takes more than JSON allows (`NaN`), keeps the last of two equal keys, and turns
`1e999` into infinity; each of these lets a file mean something else to another reader.
"""

import json
import math
from typing import Any, Final, NoReturn

from molscore.errors import BundleError

MAX_DEPTH: Final = 32
MAX_DIGITS: Final = 20


def parse_object(raw: bytes, *, where: str, max_bytes: int) -> dict[str, Any]:
    """Parse UTF-8 JSON whose top level is an object.

    Args:
        raw: the text.
        where: what to call it in an error message.
        max_bytes: longest text accepted.

    Raises:
        BundleError: when it is too long, not JSON, nested deeper than `MAX_DEPTH`, holds NaN or
            infinity, an integer of more than `MAX_DIGITS` digits, half of a surrogate pair, or
            the same key twice.
    """
    if len(raw) > max_bytes:
        raise BundleError(f"{where}: {len(raw)} bytes, more than the {max_bytes} allowed")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_int=_parse_int,
            parse_float=_parse_float,
            object_pairs_hook=_unique_keys,
        )
    except RecursionError:
        raise BundleError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise BundleError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BundleError(f"{where}: expected a JSON object, got {type(value).__name__}")
    _check_depth(value, where)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # "\\ud800" alone is no character, and no file can hold it
        raise BundleError(f"{where}: half of a surrogate pair in a text") from None
    return value


def dump_object(value: dict[str, Any], *, indent: int | None = 1) -> bytes:
    """Return `value` as UTF-8 JSON; NaN and infinity raise ValueError."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=indent).encode("utf-8")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"integer of {len(digits)} digits")
    return int(digits)


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is out of range")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key[:80]!r} stands twice")
            seen.add(key)
    return result


def _check_depth(value: dict[str, Any], where: str) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise BundleError(f"{where}: nested deeper than {MAX_DEPTH} levels")

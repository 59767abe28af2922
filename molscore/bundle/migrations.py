"""Manifests of earlier schemas, brought to the current one by named functions.

`MIGRATIONS[n]` takes the JSON of schema n and returns that of schema n + 1. A change of schema
adds one function here and one stored bundle to the tests; a bundle that cannot be brought
forward (features that are gone) raises `BundleError` with the reason in its function.
"""

from collections.abc import Callable
from typing import Any, Final

from molscore.errors import BundleError

SCHEMA_VERSION: Final = 1

Migration = Callable[[dict[str, Any]], dict[str, Any]]
MIGRATIONS: Final[dict[int, Migration]] = {}


def migrate(data: dict[str, Any], *, where: str) -> dict[str, Any]:
    """Bring manifest JSON to `SCHEMA_VERSION`.

    Args:
        data: the JSON object of `manifest.json`.
        where: what to call the bundle in an error message.

    Raises:
        BundleError: when the schema is missing, newer than this molscore, or older than any
            migration.
    """
    version = data.get("schema_version")
    if type(version) is not int:
        raise BundleError(f"{where}: manifest.json has no schema_version")
    if version > SCHEMA_VERSION:
        writer = data.get("molscore_version")
        needed = (
            f"molscore {writer[:40]} or later" if isinstance(writer, str) else "a later molscore"
        )
        raise BundleError(
            f"{where}: bundle schema {version}; this molscore reads schemas up to "
            f"{SCHEMA_VERSION}: install {needed}"
        )
    while version < SCHEMA_VERSION:
        step = MIGRATIONS.get(version)
        if step is None:
            raise BundleError(
                f"{where}: bundle schema {version} is no longer readable: train again"
            )
        data = step(data)
        version += 1
        if data.get("schema_version") != version:
            raise BundleError(f"{where}: migration to schema {version} failed")
    return data

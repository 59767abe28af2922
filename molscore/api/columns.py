"""Names for our columns that do not clash with the user's."""

from collections.abc import Sequence


def free_names(taken: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return `names`; one that is taken gets a number behind it (`model_2`)."""
    free: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken or candidate in free:
            number += 1
            candidate = f"{name}_{number}"
        free.append(candidate)
    return free

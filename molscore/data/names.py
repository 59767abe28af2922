"""Column names that do not clash."""

from collections.abc import Collection, Sequence


def free_names(taken: Collection[str], names: Sequence[str]) -> list[str]:
    """Return `names`; one that is taken, or stands before, gets a number behind it (`y_2`)."""
    free: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken or candidate in free:
            number += 1
            candidate = f"{name}_{number}"
        free.append(candidate)
    return free

"""Columns of two classes: which they are, which one is positive, and reading their cells.

Classes are 0 and 1, a pair of `CLASS_WORDS`, or a word and its negation (`soluble`,
`insoluble`). Which of two other words is the positive one is not guessed.
"""

import math
import re
from collections.abc import Iterable
from typing import Final

from molscore.data.values import GAPS, Decimal, parse_number

CLASS_WORDS: Final = (
    ("false", "true"),
    ("f", "t"),
    ("no", "yes"),
    ("n", "y"),
    ("inactive", "active"),
    ("negative", "positive"),
)
"""Pairs of words that mean 0 and 1, compared without regard to case."""

_NEGATION: Final = re.compile(r"(?:(?:in|im|il|ir|un)-?|non[ _-]*|(?:not|no)[ _-]+)(\w.+)")
_LISTED: Final = 4
MOSTLY: Final = 0.9
"""Share of a column's cells that must be one of two classes for it to be meant as classes."""


def detect_classes(
    cells: Iterable[str], decimal: Decimal = ".", *, strict: bool = False
) -> tuple[str, str] | None:
    """Find out which two classes a column holds.

    Its numbers decide, if there are any: 0 and 1 (also `0.0`, `1.0`) and no other. Without
    numbers, the one pair of words of which both are there: of `CLASS_WORDS`, a word and its
    negation (`toxic`, `non-toxic`), or a word with a plus and with a minus (`BBB+`, `BBB-`).
    Whatever else the column holds is odd, and for `parse_class` to refuse row by row. A column
    of ones alone, or of zeros alone, is taken as numbers; one word of `CLASS_WORDS` alone
    stands for its pair.

    Args:
        cells: the cells of the column; gaps do not count.
        decimal: decimal mark of its numbers.
        strict: take no column that also holds something odd.

    Returns:
        The names of class 0 and class 1, in lower case, or None.
    """
    found = _words(cells)
    numbers = {n for text in found if not isinstance(n := parse_number(text, decimal), str)}
    odd = {text for text in found if isinstance(parse_number(text, decimal), str)}
    if numbers:
        return ("0", "1") if numbers == {0.0, 1.0} and not (strict and odd) else None
    for pair in CLASS_WORDS:
        if found and found <= set(pair):
            return pair
    pairs = _pairs(found)
    if len(pairs) != 1 or (strict and len(found) > 2):
        return None
    return pairs.pop()


def require_classes(cells: Iterable[str], decimal: Decimal = ".") -> tuple[str, str] | str:
    """Find the two classes of a column that a user says to hold classes.

    Returns:
        The names of class 0 and class 1, or, in words, what there is instead of them.
    """
    found = _words(cells)
    classes = detect_classes(found, decimal)
    words = {text for text in found if isinstance(parse_number(text, decimal), str)}
    if classes is None and len(pairs := _pairs(words)) == 1:
        return pairs.pop()
    numbers = {n for text in found if not isinstance(n := parse_number(text, decimal), str)}
    # Beside 0 and 1 another number is a slip, in the place of one of them it is another code.
    if (
        classes is None
        and numbers & {0.0, 1.0}
        and (numbers <= {0.0, 1.0} or {0.0, 1.0} <= numbers)
    ):
        return ("0", "1")
    if classes is not None or not found:
        return classes or ("0", "1")
    listed = sorted(found)[:_LISTED]
    more = f" and {len(found) - len(listed)} more" if len(found) > len(listed) else ""
    accepted = ", ".join(f"{pair[0]}/{pair[1]}" for pair in (("0", "1"), *CLASS_WORDS))
    return (
        f"classes are {accepted}, or a word and its negation (insoluble/soluble, "
        f"non-toxic/toxic); it holds {', '.join(repr(text[:40]) for text in listed)}{more}"
    )


def parse_class(text: str, classes: tuple[str, str]) -> float | str:
    """Read one cell as a class.

    Returns:
        0.0 or 1.0, NaN for a gap, or the reason in words why the cell cannot be read.
    """
    cell = _fold(text)
    if cell in GAPS:
        return math.nan
    if cell in classes:
        return float(classes.index(cell))
    number = parse_number(cell)
    if classes == ("0", "1") and number in {0.0, 1.0}:
        return float(number)
    return f"not one of the classes {classes[0]} and {classes[1]}"


def _words(cells: Iterable[str]) -> set[str]:
    return {_fold(text) for text in cells} - GAPS


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _pairs(words: set[str]) -> set[tuple[str, str]]:
    """Return the pairs (negative, positive) of which both words are there."""
    pairs = {pair for pair in CLASS_WORDS if words >= set(pair)}
    for word in words:
        negated = _NEGATION.fullmatch(word)
        if negated and negated[1] in words:
            pairs.add((word, negated[1]))
        if word.endswith("+") and f"{word[:-1]}-" in words:
            pairs.add((f"{word[:-1]}-", word))
    return pairs

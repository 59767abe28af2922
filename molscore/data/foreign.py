"""Words from elsewhere that are said again: in messages, in another manifest, in a table."""

from typing import Any, Final

LONGEST: Final = 80
"""Characters kept; a message has no room for more."""


def encodable(text: str) -> str:
    """Return a text with an escape for each half of a surrogate pair, which is no character.

    The names of files hold such where they are not UTF-8.
    """
    return text.encode(errors="backslashreplace").decode()


def clip(text: Any) -> str:
    """Return a value as text: cut, and "?" for what is not printable, such as line breaks."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:LONGEST])

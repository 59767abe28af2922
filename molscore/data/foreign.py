"""Words of a file from elsewhere that are said again: in messages, in another manifest."""

from typing import Any, Final

LONGEST: Final = 80
"""Characters kept; a message has no room for more."""


def clip(text: Any) -> str:
    """Return a value as text: cut, and "?" for what is not printable, such as line breaks."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:LONGEST])

"""Text that can go over a wire."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import is_
from typing import TypeVar

__all__ = ["scrub"]

T = TypeVar("T")

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def scrub(value: T) -> T:
    """Replace lone surrogates, which no UTF-8 can carry, by U+FFFD, in a text or anywhere in content blocks.

    A surrogate pair spelt as two characters becomes the character it means. Returns the same object where there is
    nothing to replace.
    """
    if isinstance(value, str):
        if value.isascii() or not _SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # type: ignore[return-value]  # a str for a str
    if isinstance(value, list):
        items = [scrub(item) for item in value]
        return value if all(map(is_, items, value)) else items  # type: ignore[return-value]  # a list for a list
    if isinstance(value, Mapping):
        fields = [(scrub(key), scrub(item)) for key, item in value.items()]
        clean = all(key is old and item is value[old] for (key, item), old in zip(fields, value, strict=True))
        return value if clean else dict(fields)  # type: ignore[return-value]  # a dict for a mapping
    return value

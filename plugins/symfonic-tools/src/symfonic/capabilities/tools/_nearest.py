"""A hint for a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["nearest"]


def nearest(got: str, known: Iterable[str]) -> str:
    """``did you mean 'sales_report'? `` with a blank behind it, or nothing where no name is near."""
    close = get_close_matches(got, sorted(known), n=1)
    return f"did you mean {close[0]!r}? " if close else ""

"""Converters that make what a frozen value holds immutable too."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["read_only"]


def read_only(given: Mapping[str, object]) -> Mapping[str, object]:
    """A read-only copy of a mapping."""
    return MappingProxyType(dict(given))

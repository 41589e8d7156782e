"""What a turn's capabilities resolved to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

__all__ = ["Entry", "Resolved"]


@attrs.frozen
class Entry:
    """One capability's resolution. It holds no contributor's name (RES-1)."""

    value: object


def _as_entries(values: Mapping[str, object]) -> Mapping[str, Entry]:
    return MappingProxyType({name: Entry(value) for name, value in values.items()})


@attrs.frozen
class Resolved:
    """Capability name to its resolution, fixed for the turn.

    Args:
        values: Capability to value. A capability that declined is absent.
    """

    _entries: Mapping[str, Entry] = attrs.field(factory=dict, alias="values", converter=_as_entries)

    def of(self, capability: str) -> Entry | None:
        """The entry of one capability, or None when it declined or nobody resolves it."""
        return self._entries.get(capability)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that have an entry, sorted."""
        return tuple(sorted(self._entries))

"""The row a router answers with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

__all__ = ["RoutedTool"]


def _read_only(value: Mapping[str, object]) -> Mapping[str, object]:
    return MappingProxyType(dict(value))


@attrs.frozen
class RoutedTool:
    """One tool a router wants offered this turn.

    Args:
        content: The tool's name, or a text when ``metadata["action_tool"]`` names the tool.
        metadata: Read-only. ``action_tool`` names the tool, ``active`` False drops the row,
            ``score`` and ``why`` explain it.
    """

    content: str
    metadata: Mapping[str, object] = attrs.field(factory=dict, converter=_read_only)

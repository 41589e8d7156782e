"""The row a router answers with."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from symfonic.kernel._freeze import read_only

__all__ = ["RoutedTool"]


@attrs.frozen
class RoutedTool:
    """One tool a router wants offered this turn.

    Args:
        content: The tool's name, or a text when ``metadata["action_tool"]`` names the tool.
        metadata: Read-only. ``action_tool`` names the tool, ``active`` False drops the row,
            ``score`` and ``why`` explain it.
    """

    content: str
    metadata: Mapping[str, object] = attrs.field(factory=dict, converter=read_only)

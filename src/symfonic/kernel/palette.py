"""Per-turn narrowing without recompiling: which tools, and the model bound to them.

Values live here; the projector that binds, and the two functions that read a turn, come from private modules and are
re-exported, so that this is the one import.
"""

from __future__ import annotations

from symfonic.kernel._palette_values import (
    NOTHING,
    Binding,
    Nothing,
    ToolPalette,
    is_provider_run,
    palette_identity,
    tool_name,
)
from symfonic.kernel._projector import PaletteProjector
from symfonic.kernel._selection import binding_for, model_for

__all__ = [
    "NOTHING",
    "Binding",
    "Nothing",
    "PaletteProjector",
    "ToolPalette",
    "binding_for",
    "is_provider_run",
    "model_for",
    "palette_identity",
    "tool_name",
]

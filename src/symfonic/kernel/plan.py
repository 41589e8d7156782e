"""The plan: everything a turn needs, compiled once, immutable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NoReturn

import attrs
import langchain_core

from symfonic.kernel._freeze import read_only
from symfonic.kernel._palette_values import tool_name
from symfonic.kernel._projector import PaletteProjector
from symfonic.kernel.dispatch import StageDispatcher
from symfonic.kernel.events import plain
from symfonic.kernel.limits import Limits
from symfonic.kernel.ports import EventSink, Handler
from symfonic.kernel.stages import Stage, StageProgram
from symfonic.kernel.toolset import Toolset

__all__ = ["Bindings", "Limits", "Plan"]

KEY_VERSION = "plan-1"
"""Changes when the way the equality key is made changes, so that keys of two ways are never equal by chance."""


def _handlers(given: Mapping[str, Handler]) -> Mapping[str, Handler]:
    return MappingProxyType(dict(given))


@attrs.frozen(eq=False, kw_only=True)
class Bindings:
    """The live objects of a plan; no part of its equality.

    Args:
        model: What to call when nothing is narrowed.
        palette: The projector, or None for a plan without tools.
        tools: The tools in plan order, as they were handed in.
        stage_handlers: Stage name to handler, read-only.
        event_sink: The sink, or None.
        record_text: Whether the sink gets people's text.
        sink_deltas: Whether the sink gets text, reasoning and tool-call deltas.
        toolset: The tools as the turn runs them.
        dispatcher: Runs the stages by their handlers.
    """

    model: object
    palette: PaletteProjector | None
    tools: tuple[object, ...]
    stage_handlers: Mapping[str, Handler] = attrs.field(converter=_handlers)
    event_sink: EventSink | None = None
    record_text: bool = False
    sink_deltas: bool = False
    toolset: Toolset
    dispatcher: StageDispatcher


@attrs.frozen(eq=False, kw_only=True)
class Plan:
    """What :func:`symfonic.kernel.compile.compile_plan` makes, and the only thing a turn needs beside its request.

    Immutable; rebinding takes a new plan. It compares and hashes by ``equality_key``. It is not pickled: each
    worker process compiles its own, and the key proves it the same.

    Args:
        stage_program: The stages in order.
        effect_grants: The effects that are granted.
        limits: What bounds a turn.
        system: The system text; empty for none.
        capabilities: Capability to the digest of its configuration.
        show_tool_errors: Whether the model is told the text of any tool error.
        bindings: The live objects.
    """

    stage_program: StageProgram
    effect_grants: frozenset[str]
    limits: Limits
    system: str = ""
    capabilities: Mapping[str, object] = attrs.field(factory=dict, converter=read_only)
    show_tool_errors: bool = False
    bindings: Bindings

    @cached_property
    def equality_key(self) -> str:
        """A text that is equal for equal declarations on every machine, and holds no secret (IPL-5).

        Computed on first read, since it needs every tool's schema.
        """
        text = json.dumps(self._declaration(), sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=plain)
        return f"{KEY_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"

    def _declaration(self) -> dict[str, object]:
        return {
            "version": KEY_VERSION,
            "langchain_core": langchain_core.__version__,
            "tools": [
                {"name": name, "runs": str(tool.runs), "schema": tool.schema}
                for name, tool in self.bindings.toolset.by_name.items()
            ],
            "stages": [_stage_row(stage) for stage in self.stage_program.stages],
            "grants": sorted(self.effect_grants),
            "capabilities": dict(self.capabilities),
            "system": hashlib.sha256(self.system.encode("utf-8", "surrogatepass")).hexdigest(),
            "limits": plain(self.limits),
            "show_tool_errors": self.show_tool_errors,
        }

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the palette, in plan order."""
        return tuple(tool_name(tool) for tool in self.bindings.tools)

    def __eq__(self, other: object) -> bool:
        """By equality key."""
        return self.equality_key == other.equality_key if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        """By equality key."""
        return hash(self.equality_key)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        message = "a plan is not pickled; compile one in each process, plan.equality_key proves them the same"
        raise TypeError(message)


def _stage_row(stage: Stage) -> dict[str, object]:
    return {
        "name": stage.name,
        "phase": str(stage.phase),
        "effects": sorted(stage.effects),
        "before": sorted(stage.before),
        "after": sorted(stage.after),
        "timeout_s": stage.timeout_s,
        "resolves": stage.resolves,
        "on_crash": stage.on_crash,
    }

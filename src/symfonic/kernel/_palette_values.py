"""The values of the palette: names, identity, what a turn resolved, what was bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Literal

import attrs

from symfonic.kernel.errors import PaletteError

__all__ = ["NOTHING", "Binding", "Names", "Nothing", "ToolPalette", "is_provider_run", "palette_identity", "tool_name"]


class Nothing(Enum):
    """The type of :data:`NOTHING`: offer no tool at all, unequal to an empty frozenset."""

    NOTHING = "nothing"

    def __repr__(self) -> str:
        """As it is imported."""
        return "NOTHING"


NOTHING: Final = Nothing.NOTHING
"""The selection that offers nothing (PAL-20)."""

Names = frozenset[str] | Literal[Nothing.NOTHING] | None
"""A selection: these names, NOTHING, or None for the full palette."""


def palette_identity(names: Names, forced: str | None = None) -> str:
    """The text that tells one binding from every other of a plan (PAL-14).

    No two palettes of a plan share one, since compile refuses the names that could collide.

    Args:
        names: A selection.
        forced: The forced tool, which is part of the identity (PAL-7).
    """
    if names is None:
        base = "*"
    elif names is NOTHING:
        base = "\x02"
    else:
        base = "\x00".join(sorted(names))
    return base if forced is None else f"{base}\x01!{forced}"


@attrs.frozen
class Binding:
    """A model bound to a subset of the palette.

    Args:
        model: The model to call.
        identity: Its :func:`palette_identity`.
        offered: Names of the offered tools, in plan order.
        forced: The force that was sent, or None.
        reason: What was given up, or None.
        fresh: Whether it was bound just now rather than found in the cache.
    """

    model: object = attrs.field(eq=False, repr=False)
    identity: str
    offered: tuple[str, ...] = ()
    forced: str | None = None
    reason: str | None = None
    fresh: bool = attrs.field(default=False, eq=False)


def _selection(value: Iterable[str] | Nothing | None) -> Names:
    if value is None or value is NOTHING:
        return value
    return frozenset((value,)) if isinstance(value, str) else frozenset(value)


def _finders(value: Iterable[str] | str) -> frozenset[str]:
    return frozenset((value,)) if isinstance(value, str) else frozenset(value)


@attrs.frozen
class ToolPalette:
    """What the ``tools`` capability resolves to when it does more than narrow.

    Args:
        names: The tools to offer; None: all; NOTHING: none.
        forced: The tool the model must call first, or None.
        reveal_by: Finder tools whose results add tools from the next round on (PAL-22).
    """

    names: Names = attrs.field(default=None, converter=_selection)
    forced: str | None = None
    reveal_by: frozenset[str] = attrs.field(default=frozenset(), converter=_finders)

    @classmethod
    def nothing(cls) -> ToolPalette:
        """Offer no tool: every tool call of this turn is refused."""
        return cls(NOTHING)

    def check(self, available: Iterable[str]) -> None:
        """Check every name against the plan's tools (PAL-15).

        Args:
            available: The names of the plan's tools.

        Raises:
            PaletteError: A name, the force or a finder is not available, the force is outside the names, or stands
                beside NOTHING. The text names the offending tools and the valid ones.
        """
        valid = frozenset(available)
        listed = f"valid: {', '.join(sorted(valid)) or 'none'}"
        chosen = self.names if isinstance(self.names, frozenset) else frozenset[str]()
        for role, unknown in (("tools", chosen - valid), ("finder tools", self.reveal_by - valid)):
            if unknown:
                message = f"a palette names {role} the plan does not have: {', '.join(sorted(unknown))}; {listed}"
                raise PaletteError(message)
        if self.forced is None:
            return
        if self.names is NOTHING:
            message = f"a palette forces {self.forced!r} and offers nothing; offer the tool or drop the force; {listed}"
            raise PaletteError(message)
        if self.forced not in valid:
            message = f"a palette forces {self.forced!r}, which the plan does not have; {listed}"
            raise PaletteError(message)
        if chosen and self.forced not in chosen:
            message = f"a palette forces {self.forced!r}, which it does not offer; valid: {', '.join(sorted(chosen))}"
            raise PaletteError(message)


def tool_name(tool: object) -> str:
    """The one name of a tool, the same everywhere (PAL-13).

    Args:
        tool: A LangChain ``BaseTool``, a function, a pydantic or TypedDict class, or a provider's dict.

    Raises:
        PaletteError: The tool has no name that can be found.
    """
    name = _dict_name(tool) if isinstance(tool, Mapping) else _object_name(tool)
    if isinstance(name, str):
        return name
    shown = (
        f"a dict with the keys {', '.join(sorted(map(str, tool)))}" if isinstance(tool, Mapping) else repr(type(tool))
    )
    message = f"no name can be found for the tool {shown}; give it a name, for a callable object wrap it in a function"
    raise PaletteError(message)


def _object_name(tool: object) -> object:
    if isinstance(tool, type):
        config = getattr(tool, "model_config", None)  # pydantic sends a configured title in the name's place
        title = config.get("title") if isinstance(config, Mapping) else None
        return title or tool.__name__
    return getattr(tool, "name", None) or getattr(tool, "__name__", None)


def _dict_name(tool: Mapping[str, object]) -> object:
    for key in ("function", "custom", "toolSpec"):
        inner = tool.get(key)
        if isinstance(inner, Mapping) and "name" in inner:
            return inner["name"]
    for key in ("name", "title"):
        if isinstance(tool.get(key), str):
            return tool[key]
    if _is_one_key(tool):
        return next(iter(tool))
    kind = tool.get("type")
    return kind if isinstance(kind, str) and kind not in _CLIENT_TYPES else None


_CLIENT_TYPES = frozenset({"function", "custom", "object"})
"""Types of tools this side runs; "object" is a JSON schema."""
_SCHEMA_KEYS = frozenset({"function", "custom", "input_schema", "parameters", "properties"})


def _is_one_key(tool: Mapping[str, object]) -> bool:
    return len(tool) == 1 and next(iter(tool)) not in {"name", "title", "type", "toolSpec", *_SCHEMA_KEYS}


def is_provider_run(tool: object) -> bool:
    """Whether the provider runs this tool itself, so that it is never executed here (PAL-13).

    Such a tool is a dict with a ``type`` other than function or custom and no schema, or with one key that is its name.
    """
    if not isinstance(tool, Mapping):
        return False
    if _is_one_key(tool):
        return True
    kind = tool.get("type")
    return isinstance(kind, str) and kind not in _CLIENT_TYPES and not _SCHEMA_KEYS & tool.keys()

"""What a tool may be handed beside the model's arguments."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from symfonic.kernel._freeze import read_only

__all__ = ["ToolTurn"]


@attrs.frozen(kw_only=True)
class ToolTurn:
    """The turn a tool call belongs to, for a tool that must know whom it works for.

    A parameter of this type, ``ToolTurn | None`` and ``Annotated[ToolTurn, ...]`` included, is filled in at each call and
    never shown to the model; what a model says for it all the same is dropped. Tenant and metadata stay out of its text,
    since arguments end up in traces.

    Args:
        tenant: Whom the turn is for.
        metadata: The request's metadata: a copy, read-only.
        conversation_id: The request's conversation.
        tool_call_id: The call's id.
    """

    tenant: str | None = attrs.field(default=None, repr=False)
    metadata: Mapping[str, object] = attrs.field(factory=dict, converter=read_only, hash=False, repr=False)
    conversation_id: str | None = None
    tool_call_id: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, object]:
        """Lets a pydantic class have a field of this type; it stands as the dict that pydantic_core would build."""
        return {"type": "is-instance", "cls": cls}

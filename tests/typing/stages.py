"""Stage handlers of each phase, with what they are handed and may answer, as type checkers see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_type

import attrs
from langchain_core.messages import BaseMessage, SystemMessage, ToolCall, ToolMessage

from symfonic.kernel.ports import Handler
from symfonic.kernel.resolution import Resolved
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import (
    NOTHING,
    Amend,
    BuildContext,
    Effect,
    HookContext,
    Phase,
    PostModelContext,
    PostToolContext,
    PreModelContext,
    PreToolContext,
    PromptAssemblyContext,
    Refuse,
    Replace,
    Resolution,
    ResolveContext,
    SettleContext,
    StageHandler,
    ToolPalette,
    TurnRequest,
    hookimpl,
)


@attrs.frozen
class Config:
    """A plugin's configuration."""

    limit: float = 200.0


async def resolve(context: ResolveContext) -> Resolution | frozenset[str] | None:
    """A resolver may answer names, a palette, or a Resolution that says why."""
    assert_type(context.request, TurnRequest)
    assert_type(context.stage, Stage)
    assert_type(context.transcript, tuple[BaseMessage, ...] | None)
    context.resolved  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    if context.request.tenant is None:
        return None
    if context.request.prompt:
        return frozenset({"refund"})
    return Resolution(ToolPalette({"refund"}, forced="refund"), why={"refund": ["asked for"]})


async def assemble(context: PromptAssemblyContext) -> Sequence[BaseMessage]:
    """Prompt assembly answers messages."""
    assert_type(context.resolved, Resolved | None)
    assert_type(context.transcript, tuple[BaseMessage, ...] | None)
    return [SystemMessage("Be brief.")]


async def before_model(context: PreModelContext) -> None:
    """Pre-model sees what is sent."""
    assert_type(context.resolved, Resolved | None)
    assert_type(context.transcript, tuple[BaseMessage, ...] | None)


async def after_model(context: PostModelContext) -> None:
    """Post-model sees what came back."""
    assert_type(context.response, BaseMessage | None)
    context.call  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def before_tool(context: PreToolContext) -> Amend | Refuse | None:
    """Pre-tool sees the call, amends or refuses it."""
    assert_type(context.call, ToolCall)
    assert_type(context.call["name"], str)
    if context.call["name"] == "refund":
        return Refuse("not today")
    Refuse()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    return Amend({**context.call["args"], "limit": 3})


def after_tool(context: PostToolContext) -> Replace | None:
    """Post-tool sees call and result, and may replace what the model is told; sync handlers are handlers."""
    assert_type(context.call, ToolCall)
    assert_type(context.result, ToolMessage)
    Replace(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return Replace("[removed]") if "secret" in context.result.text else None


async def settle(context: SettleContext) -> None:
    """Settle sees the result."""
    assert_type(context.result, TurnResult)
    context.result.text = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def build_guard(context: BuildContext[Config]) -> Callable[[PreToolContext], Awaitable[Refuse | None]]:
    """A factory is handed an instance of its config class."""
    assert_type(context.config, Config)
    assert_type(context.config.limit, float)
    assert_type(context.tools, tuple[object, ...])
    assert_type(context.tool_names, tuple[str, ...])
    context.config.limits  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    async def guard(call: PreToolContext) -> Refuse | None:
        return Refuse("too much") if call.call["args"].get("eur", 0) > context.config.limit else None

    return guard


def build_settle(_: BuildContext[None]) -> Callable[[SettleContext], Awaitable[None]]:
    """A factory without configuration."""
    return settle


def not_a_factory(context: HookContext) -> object:
    """Takes the wrong context."""
    return context


@hookimpl
def symfonic_stages(context: HookContext) -> list[StageHandler]:
    """A hook returns descriptors; phases and effects may be written as text or as members."""
    assert_type(context.plugin, str)
    StageHandler("guard", build_guard)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    StageHandler("guard", not_a_factory, phase="settle")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    StageHandler("guard", build_guard, phase="settle", timeout="3")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    return [
        StageHandler("guard", build_guard, phase="pre-tool", effects=("tool_call.refuse",), config=Config, timeout_s=3),
        StageHandler("books", build_settle, phase=Phase.SETTLE, effects=[Effect.TOOL_CALL_REFUSE], after="guard"),
    ]


def palettes(handler: Handler) -> None:
    """A palette takes any iterable of names, or NOTHING, or no names at all."""
    assert_type(ToolPalette.nothing(), ToolPalette)
    ToolPalette(["a", "b"], reveal_by=("a",))
    ToolPalette("a")
    ToolPalette(NOTHING)
    assert_type(ToolPalette(forced="a").forced, str | None)
    assert_type(ToolPalette({"a"}).check(["a"]), None)
    ToolPalette(names=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ToolPalette(force="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(handler(None), object)

"""What else plugins contribute: tools, routers, forcing providers, models, sinks, as type checkers see them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import assert_type

import attrs
from langchain_core.language_models import BaseChatModel

from symfonic.plugin import (
    BindRequest,
    Bound,
    BuildContext,
    ChatModel,
    Event,
    EventSink,
    ForcingProvider,
    ForcingSupport,
    HookContext,
    Route,
    RoutedTool,
    Router,
    Tools,
    TurnRequest,
    hookimpl,
    tool_name,
)
from symfonic.testing import RecordingSink, ScriptedModel


@attrs.frozen
class Config:
    """A plugin's configuration."""

    words: tuple[str, ...] = ("weather",)


@attrs.frozen
class Another:
    """Another plugin's configuration."""


def build_tools(context: BuildContext[Config]) -> list[object]:
    """A list of whatever a tool may be."""
    return [len, {"type": "web_search"}, context.config.words]


@asynccontextmanager
async def open_tools(context: BuildContext[Config]) -> AsyncGenerator[list[object], None]:
    """What is entered at start and left at the end."""
    yield [context.plugin]


async def await_tools(context: BuildContext[Config]) -> list[object]:
    """What is awaited."""
    return [context.plugin]


def build_router(context: BuildContext[Config]) -> Route:
    """A router, as in the tutorial."""

    async def route(turn: TurnRequest) -> Sequence[RoutedTool] | None:
        matched = [word for word in context.config.words if word in turn.prompt.lower()]
        return [RoutedTool("weather", {"why": matched})] if matched else None

    assert_type(context.routers.ids, tuple[str, ...])
    return route


def build_sync_router(_: BuildContext[Config]) -> Route:
    """A router that is not async is none."""

    def route(_: TurnRequest) -> Sequence[RoutedTool] | None:
        return None

    return route  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


class Forcing:
    """A forcing provider."""

    def support(self, model: object) -> ForcingSupport | None:
        """Claim a model."""
        return ForcingSupport("honoured") if isinstance(model, ScriptedModel) else None

    def bind(self, request: BindRequest) -> Bound:
        """Bind it."""
        assert_type(request.forced, str | None)
        names = [tool_name(tool) for tool in request.selected]
        return Bound(request.model, names, forced_sent=request.forced is not None)


def build_model(context: BuildContext[None]) -> BaseChatModel:
    """A chat model, from the deployment's options."""
    assert_type(context.options["temperature"], object)
    return ScriptedModel("hi")


class Sink:
    """A sink."""

    def emit(self, event: Event) -> None:
        """Take one event."""


@hookimpl
def symfonic_tools(context: HookContext) -> list[Tools]:
    """Factories may return, await, or open."""
    Tools("weather", build_tools(BuildContext(config=Config())))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Tools(build_tools)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    return [Tools("a", build_tools, config=Config), Tools("b", open_tools), Tools("c", await_tools, summary="C.")]


@hookimpl
def symfonic_routers(context: HookContext) -> list[Router]:
    """The tutorial's router."""
    return [Router("weather", build_router, config=Config, summary="Offers weather on its words.")]


@hookimpl
def symfonic_forcing_providers(context: HookContext) -> list[ForcingProvider]:
    """A class without configuration is a factory once it takes the context."""
    return [ForcingProvider("scripted", lambda _: Forcing())]


@hookimpl
def symfonic_chat_models(context: HookContext) -> list[ChatModel]:
    """A model."""
    return [ChatModel("scripted", build_model)]


@hookimpl
def symfonic_event_sinks(context: HookContext) -> list[EventSink]:
    """Sinks."""
    return [EventSink("kept", lambda _: RecordingSink(), deltas=True), EventSink("own", lambda _: Sink(), queued=True)]


def contexts() -> None:
    """A build context is generic in the config class, and a factory takes no other plugin's."""
    assert_type(BuildContext(config=Config()), BuildContext[Config])
    assert_type(BuildContext(config=Config()).config.words, tuple[str, ...])
    build_router(BuildContext(config=Another()))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    BuildContext()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    RoutedTool()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ForcingSupport()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

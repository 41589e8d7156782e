"""The plugin ``tools``: the tools capability, configured from symfonic.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from symfonic.capabilities.tools._nearest import nearest
from symfonic.capabilities.tools.capability import ToolsCapability
from symfonic.capabilities.tools.keywords import keyword_router
from symfonic.capabilities.tools.routing import LowLevelRouter
from symfonic.plugin import BuildContext, ConfigError, Effect, HookContext, Phase, StageHandler, hookimpl

__all__ = ["KEYWORDS", "Config", "symfonic_stages"]

KEYWORDS = "keywords"
"""The keyword router's name in ``routers``."""


@attrs.frozen(kw_only=True)
class Config:
    """``[plugin.config]``.

    Args:
        mode: "off", "observe" or "enforce".
        always: Tools offered whatever was routed.
        on_miss: "all", "always" or "error".
        on_error: "miss" or "fail": what a router that raises or times out comes to.
        timeout_s: Seconds all routers together may take.
        match: How keywords match: "substring" or "word".
        keywords: Tool to the words that surface it.
        routers: The routers to ask, in order: "keywords" and ids of contributed ones. Absent: the keyword router if
            keywords are given, then every contributed one in file order.
    """

    mode: Literal["off", "observe", "enforce"] = "enforce"
    always: tuple[str, ...] = ()
    on_miss: Literal["all", "always", "error"] = "all"
    on_error: Literal["miss", "fail"] = "miss"
    timeout_s: float | None = None
    match: Literal["substring", "word"] = "substring"
    keywords: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    routers: tuple[str, ...] | None = None


def build(context: BuildContext[Config]) -> ToolsCapability:
    """The capability over the plan's tools.

    Raises:
        ConfigError: The configuration names what is not there, or leaves a contributed router out.
    """
    config = context.config if context.config is not None else Config()
    try:
        return ToolsCapability(
            _routers(context, config),
            palette=context.tool_names,
            mode=config.mode,
            always=config.always,
            on_miss=config.on_miss,
            on_error=config.on_error,
            timeout_s=config.timeout_s,
            labels={name: f"router {context.routers.label(name)}" for name in context.routers.ids},
        )
    except (ValueError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError([f"plugin.config: {error}"]) from error


def _routers(context: BuildContext[Config], config: Config) -> list[tuple[str, LowLevelRouter]]:
    """The routers in order (TLS-0)."""
    contributed = context.routers.ids
    names = config.routers
    if names is None:
        names = (*((KEYWORDS,) if config.keywords else ()), *contributed)
    problems = _list_problems(names, contributed, config)
    if problems:
        raise ConfigError(problems)
    return [(name, _keywords(context, config) if name == KEYWORDS else context.routers.take(name)) for name in names]


def _list_problems(names: tuple[str, ...], contributed: tuple[str, ...], config: Config) -> list[str]:
    if KEYWORDS in contributed:
        return [
            f"plugin.config: a contributed router is called {KEYWORDS!r}, as the keyword router is; give it another id"
        ]
    problems: list[str] = []
    known = (KEYWORDS, *contributed)
    problems.extend(
        f"plugin.config.routers: no selected plugin contributes {name!r}; {nearest(name, known)}known: {', '.join(known)}"
        for name in names
        if name not in known
    )
    missing = [name for name in contributed if name not in names]
    if config.keywords and KEYWORDS not in names:
        missing.append(KEYWORDS)
    if missing:
        line = ", ".join(f'"{name}"' for name in (*names, *missing))
        problems.append(f"plugin.config.routers leaves out {', '.join(missing)}; write routers = [{line}]")
    if len(set(names)) < len(names):
        problems.append("plugin.config.routers names a router twice; keep one")
    if not names and not missing:
        problems.append("plugin.config: no router to ask; give keywords, or select a plugin that contributes a router")
    return problems


def _keywords(context: BuildContext[Config], config: Config) -> LowLevelRouter:
    try:
        return keyword_router(config.keywords, registered=context.tool_names, match=config.match)
    except ValueError as error:
        raise ConfigError([f"plugin.config.keywords: {error}"]) from error


@hookimpl
def symfonic_stages(context: HookContext) -> list[StageHandler]:  # noqa: ARG001  # the hook's signature
    """Contribute the resolver of the capability ``tools``."""
    return [
        StageHandler(
            "resolve",
            build,
            config=Config,
            phase=Phase.RESOLVE,
            effects=(Effect.TOOLS_NARROW,),
            resolves="tools",
            summary="Offers the tools that routers choose, once a turn.",
        )
    ]

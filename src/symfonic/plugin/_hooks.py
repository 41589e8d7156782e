"""The six hooks, and the marker a plugin's functions carry.

Every hook is a module-level, synchronous function of one argument, ``context``. The host calls the implementations one
at a time, in the order of the ``[[plugin]]`` blocks, once for each start or reload.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from symfonic.plugin._descriptors import (
    ChatModel,
    Contribution,
    EventSink,
    ForcingProvider,
    HookContext,
    Router,
    StageHandler,
    Tools,
)

__all__ = ["HOOK_KINDS", "PROJECT", "HookSpecs", "hookimpl"]

PROJECT = "symfonic"
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin's module as the implementation of the hook it is named after."""

_hookspec = pluggy.HookspecMarker(PROJECT)


class HookSpecs:
    """The hooks a plugin may implement, as functions of its module that take ``context`` alone."""

    @_hookspec
    def symfonic_tools(self, context: HookContext) -> Sequence[Tools] | None:
        """Contribute tools.

        When: once for each start or reload; of all factories those of tools are called first, since the others see them.
        Order: file order of the plugins, then the order returned; tools stand in the plan so.
        May return None: yes, nothing is contributed.
        A crash: the plugin is failed with reason invalid-hooks; under policy strict the start is refused.
        """

    @_hookspec
    def symfonic_routers(self, context: HookContext) -> Sequence[Router] | None:
        """Contribute routers, which say which tools to offer a turn.

        When: once for each start or reload; the factories are called when the tools are built.
        Order: file order; a capability that asks them in turn takes the first that answers.
        May return None: yes. A router that no capability takes is an error.
        A crash: the plugin is failed with reason invalid-hooks; under policy strict the start is refused.
        """

    @_hookspec
    def symfonic_stages(self, context: HookContext) -> Sequence[StageHandler] | None:
        """Contribute stage handlers; a resolver is a stage at phase resolve.

        When: once for each start or reload; the factories are called when tools and routers are built.
        Order: file order does not matter; inside a phase before and after decide, then the name.
        May return None: yes, nothing is contributed.
        A crash: the plugin is failed with reason invalid-hooks; under policy strict the start is refused.
        """

    @_hookspec
    def symfonic_forcing_providers(self, context: HookContext) -> Sequence[ForcingProvider] | None:
        """Contribute what knows how a family of models takes a forced tool choice.

        When: once for each start or reload; each provider is asked about the plan's model then, never in a turn.
        Order: file order; the first whose answer is not None decides.
        May return None: yes, nothing is contributed.
        A crash: in the hook as everywhere; in ``support``: the answer is unknown, with the crash as its reason.
        """

    @_hookspec
    def symfonic_chat_models(self, context: HookContext) -> Sequence[ChatModel] | None:
        """Contribute chat models, chosen by ``[model] use = "plugin:id"``.

        When: once for each start or reload; only the chosen one is built.
        Order: does not matter, the id is qualified by the plugin's.
        May return None: yes, nothing is contributed.
        A crash: the plugin is failed with reason invalid-hooks; under policy strict the start is refused.
        """

    @_hookspec
    def symfonic_event_sinks(self, context: HookContext) -> Sequence[EventSink] | None:
        """Contribute event sinks.

        When: once for each start or reload; the factories are called last.
        Order: file order; each sink gets every event in the order of its numbers.
        May return None: yes, nothing is contributed.
        A crash: in the hook as everywhere; in ``emit``: counted and told, the turn goes on.
        """


HOOK_KINDS: dict[str, type[Contribution]] = {
    "symfonic_tools": Tools,
    "symfonic_routers": Router,
    "symfonic_stages": StageHandler,
    "symfonic_forcing_providers": ForcingProvider,
    "symfonic_chat_models": ChatModel,
    "symfonic_event_sinks": EventSink,
}
"""Hook name to the descriptor its implementations return."""

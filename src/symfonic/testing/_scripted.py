"""A whole turn in one call: plugins as modules, a script in the model's place, everything told kept."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import ModuleType
from typing import TypeVar, Unpack

import attrs
from langchain_core.messages import AIMessage

from symfonic.host.compose import Use, compose
from symfonic.host.provenance import Provenance
from symfonic.kernel.events import Event
from symfonic.kernel.limits import Limits
from symfonic.kernel.request import RequestFields, TurnRequest
from symfonic.kernel.turn import TurnResult
from symfonic.testing._calls import Call
from symfonic.testing._model import ScriptedModel, Step

__all__ = ["ScriptRun", "run_scripted"]

E = TypeVar("E", bound=Event)


@attrs.frozen(kw_only=True)
class ScriptRun:
    """What a scripted turn came to.

    Args:
        result: As ``host.run`` returns it.
        events: Everything the turn told, in order, texts and deltas included.
        model: The scripted model, which kept what it was asked and bound to.
        provenance: Who contributed what to the plan.
    """

    result: TurnResult
    events: tuple[Event, ...] = attrs.field(repr=False)
    model: ScriptedModel = attrs.field(repr=False)
    provenance: Provenance = attrs.field(repr=False)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of the model, with what it was sent and which tools it was offered."""
        return tuple(self.model.calls)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order."""
        return [event for event in self.events if isinstance(event, kind)]


async def run_scripted(
    script: Step | Iterable[Step],
    prompt: str | TurnRequest = "hi",
    *,
    tools: Iterable[object] = (),
    plugins: Iterable[Use | ModuleType] = (),
    system: str = "",
    sinks: Iterable[object] = (),
    limits: Limits | None = None,
    root: str | os.PathLike[str] = ".",
    **request: Unpack[RequestFields],
) -> ScriptRun:
    """Compose a host of plugins whose model follows a script, and run one turn on it.

    The plugins go the whole way of a deployment: hooks checked and called, configuration structured, factories entered
    and left. Only the model is not real, and nothing is read from installed metadata.

    Args:
        script: What the model answers, one step a round; a single step needs no list. A step is a text, a message
            (``call_tool`` makes one), an error to raise, or a function of the :class:`Call` to any of these.
        prompt: The user's text, or a whole TurnRequest.
        tools: Tools beside those of the plugins.
        plugins: The plugins, in order of precedence; a bare module is used without configuration.
        system: The system text.
        sinks: Event sinks; a RecordingSink keeps the events of a turn that fails, too.
        limits: What bounds the turn.
        root: The folder relative paths in plugins' configuration are relative to.
        **request: The other fields of TurnRequest.

    Raises:
        ConfigError, PluginError, PlanRefused: The host refuses a plugin, as it would in a deployment.
        TurnFailed: The turn failed; its ``result`` holds everything so far. A script that is too short fails so.
    """
    model = ScriptedModel(*_steps(script))
    uses = [Use(plugin) if isinstance(plugin, ModuleType) else plugin for plugin in plugins]
    async with compose(
        model=model, tools=tools, system=system, plugins=uses, sinks=sinks, limits=limits, root=root
    ) as host:
        stream = host.stream(prompt, **request)
        events = tuple([event async for event in stream])
        return ScriptRun(result=stream.partial, events=events, model=model, provenance=host.provenance)


def _steps(script: Step | Iterable[Step]) -> tuple[Step, ...]:
    """A single step as a script of one: texts and messages can be iterated themselves."""
    if isinstance(script, str | AIMessage | BaseException) or callable(script):
        return (script,)
    return tuple(script)

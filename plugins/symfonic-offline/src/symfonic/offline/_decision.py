"""The one decision of a model call: call a tool, or say something."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from symfonic.offline._answer import Doubt, from_results, without_call
from symfonic.offline._arguments import Arguments, fill
from symfonic.offline._choice import choose
from symfonic.offline._dates import Today
from symfonic.offline._offered import Tool
from symfonic.offline._reading import Reading
from symfonic.offline._turn import Turn

ANY = frozenset({"any", "required"})
WORDS = ANY | {"auto", "none"}
"""The tool choices that are no tool's name."""


@attrs.frozen
class Call:
    """A tool to call, with its arguments."""

    tool: str
    arguments: Arguments


def decide(turn: Turn, tools: Sequence[Tool], choice: str, today: Today | None) -> Call | str:
    """A call, or an answer in text.

    A tool named by the choice is called unless it answered in this turn already. Any result ends
    the search for a tool: this stand-in takes one step, and then tells what came of it. A tool that
    lacks a required argument, or that another fits as well as, is called only where some tool must be.
    """
    named = next((tool for tool in tools if tool.name == choice), None)
    if named and choice not in {result.tool for result in turn.results}:
        return Call(named.name, fill(named, Reading.of(turn.prompt, today)))
    if turn.results:
        return from_results(turn.results)
    if choice == "none":
        return without_call(turn.prompt, tools, may_call=False)
    fit = choose(tools, Reading.of(turn.prompt, today))
    if fit is None or not (fit.enough or choice in ANY):
        return without_call(turn.prompt, tools)
    if (fit.missing or fit.tied) and choice not in ANY:
        return without_call(turn.prompt, tools, doubt=Doubt(fit.tool.name, fit.missing))
    return Call(fit.tool.name, fit.arguments)

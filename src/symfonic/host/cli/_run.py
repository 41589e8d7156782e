"""``run``: one turn, its answer streamed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symfonic.host.cli._answer import AnswerPrinter, ignore, quiet_logging, tell_degradations
from symfonic.host.cli._exit import CODES, LIMIT, Exit, error_json, json_errors
from symfonic.host.cli._options import config_option, drawing, echo_json, json_option
from symfonic.host.compose import Host
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError, SymfonicError
from symfonic.kernel.events import Event, TurnErrored, TurnFinished
from symfonic.kernel.request import TurnRequest

if TYPE_CHECKING:
    from symfonic.host.provenance import Provenance
    from symfonic.kernel.turn import TurnResult

__all__ = ["run"]


@click.command()
@click.argument("prompt")
@config_option
@click.option("--trace", is_flag=True, help="Show the turn as a tree: stages, tools offered and why, calls, cost.")
@click.option("--tenant", metavar="NAME", help="Whom the turn is for.")
@click.option("--tool-choice", metavar="TOOL", help="A tool the model must call first.")
@click.option("--allow", metavar="TOOL", multiple=True, help="Allow these tools alone; may be given several times.")
@json_option
def run(
    prompt: str,
    config: Path | None,
    tenant: str | None,
    tool_choice: str | None,
    allow: tuple[str, ...],
    *,
    trace: bool,
    as_json: bool,
) -> None:
    """Run one turn and print the answer. PROMPT is the user's text; - reads it from standard input."""
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if prompt == "-" else prompt
    request = TurnRequest(text, tenant=tenant, tool_choice=tool_choice, allowed_tools=allow or None)
    quiet_logging()
    with json_errors(wanted=as_json):
        try:
            shown = asyncio.run(_turn(config, request, live=not as_json))
        except KeyboardInterrupt:
            raise Exit(CODES["cancelled"]) from None
    result = shown.result
    if as_json:
        told = result.to_json() if shown.fault is None else error_json(shown.fault)
        echo_json({**told, **({"events": [event.to_json() for event in shown.events]} if trace else {})})
    elif trace:
        drawing().print_trace(shown.events, shown.provenance)
    else:
        tell_degradations(result)
    if shown.fault is not None:
        raise shown.fault
    raise Exit(CODES.get(result.stop_reason, LIMIT))


def _check_names(request: TurnRequest, tools: Collection[str]) -> None:
    """A tool named on the command line must be one of the plan's."""
    named = [*sorted(request.allowed_tools or ()), *([request.tool_choice] if request.tool_choice is not None else [])]
    unknown = [f"the plan has no tool {name!r}; {did_you_mean(name, tools)}" for name in named if name not in tools]
    if unknown:
        raise ConfigError(unknown)


class _Shown:
    """A turn that was shown: its events, its result, who contributed what, the fault that ended it."""

    def __init__(self, provenance: Provenance) -> None:
        self.provenance = provenance
        self.events: list[Event] = []
        self.fault: SymfonicError | None = None

    @property
    def result(self) -> TurnResult:
        """The result the terminal event carries."""
        last = self.events[-1]
        if not isinstance(last, TurnFinished | TurnErrored) or last.result is None:
            message = "the turn told no terminal event"
            raise RuntimeError(message)
        return last.result


async def _turn(config: Path | None, request: TurnRequest, *, live: bool) -> _Shown:
    async with Host.from_file(config) as host:
        _check_names(request, host.provenance.tools)
        shown = _Shown(host.provenance)
        show = AnswerPrinter() if live else ignore
        async with host.stream(request) as stream:
            try:
                async for event in stream:
                    shown.events.append(event)
                    show(event)
            except SymfonicError as fault:  # told by the caller, after what was shown
                if not shown.events or not isinstance(shown.events[-1], TurnErrored):
                    raise
                shown.fault = fault
        return shown

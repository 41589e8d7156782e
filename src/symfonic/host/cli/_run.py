"""``run``: one turn, its answer streamed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symfonic.host.cli._answer import AnswerPrinter, quiet_logging, tell_degradations
from symfonic.host.cli._exit import CODES, LIMIT, Exit, error_json, json_errors
from symfonic.host.cli._opening import opened
from symfonic.host.cli._options import config_option, drawing, echo_json, json_option
from symfonic.host.provenance import Provenance
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError, SymfonicError
from symfonic.kernel.events import Event, RoundStarted, TurnErrored, TurnFinished
from symfonic.kernel.request import TurnRequest

if TYPE_CHECKING:
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
    shown = _Shown(AnswerPrinter() if not as_json else None)
    with json_errors(wanted=as_json):
        try:
            asyncio.run(_turn(config, request, shown))
        except KeyboardInterrupt:
            shown.tell_interrupted(trace=trace)
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
    listed = "symfonic-kernel plan lists them"
    problems = [
        f"the plan has no tool {name!r}; {did_you_mean(name, tools, listed)}"
        for name in dict.fromkeys(named)
        if name not in tools
    ]
    allowed, choice = request.allowed_tools, request.tool_choice
    if not problems and allowed is not None and choice is not None and choice not in allowed:
        problems.append(f"--tool-choice {choice} is not among the tools --allow names; add --allow {choice}")
    if problems:
        raise ConfigError(problems)


class _Shown:
    """A turn that is shown: its events so far, its result, who contributed what, the fault that ended it.

    Args:
        printer: Prints the answer as it comes; None: nothing is printed on the way.
    """

    def __init__(self, printer: AnswerPrinter | None) -> None:
        self._printer = printer
        self.provenance = Provenance()
        self.events: list[Event] = []
        self.fault: SymfonicError | None = None

    def add(self, event: Event) -> None:
        """Keep an event, and print what it brings."""
        self.events.append(event)
        if self._printer is not None:
            self._printer(event)

    def tell_interrupted(self, *, trace: bool) -> None:
        """Tell on standard error that the turn was given up, after the tree so far where that is wanted."""
        if self._printer is not None:
            self._printer.end_line()
            if trace and self.events:
                drawing().print_trace(self.events, self.provenance)
        rounds = sum(isinstance(event, RoundStarted) for event in self.events)
        where = f" in round {rounds}" if rounds else ""
        click.echo(f"interrupted; the turn was given up{where}", err=True)

    @property
    def result(self) -> TurnResult:
        """The result the terminal event carries."""
        last = self.events[-1]
        if not isinstance(last, TurnFinished | TurnErrored) or last.result is None:
            message = "the turn told no terminal event"
            raise RuntimeError(message)
        return last.result


async def _turn(config: Path | None, request: TurnRequest, shown: _Shown) -> None:
    async with opened(config) as host:
        _check_names(request, host.provenance.tools)
        shown.provenance = host.provenance
        async with host.stream(request) as stream:
            try:
                async for event in stream:
                    shown.add(event)
            except SymfonicError as fault:  # told by the caller, after what was shown
                if not shown.events or not isinstance(shown.events[-1], TurnErrored):
                    raise
                shown.fault = fault

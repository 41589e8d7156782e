"""``run``: one turn, its answer streamed."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symfonic.host.cli._exit import CODES, LIMIT, Exit, error_json, json_errors
from symfonic.host.cli._options import config_option, drawing, echo_json, json_option
from symfonic.host.compose import Host
from symfonic.kernel._result import STOP_REASONS
from symfonic.kernel.errors import SymfonicError
from symfonic.kernel.events import Event, RoundStarted, TextDelta, TurnErrored, TurnFinished
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
    _quiet_logging()
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
        _tell_degradations(result)
    if shown.fault is not None:
        raise shown.fault
    raise Exit(CODES.get(result.stop_reason, LIMIT))


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
        shown = _Shown(host.provenance)
        show = _Printer() if live else _ignore
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


_Show = Callable[[Event], None]


def _ignore(_: Event) -> None:
    """With ``--json`` nothing is printed on the way."""


class _Printer:
    """Prints the answer as it comes; what a later round says starts on a line of its own."""

    def __init__(self) -> None:
        self._open_line = False

    def __call__(self, event: Event) -> None:
        """Print what one event brings."""
        if isinstance(event, TextDelta) and event.text:
            click.echo(event.text, nl=False)
            sys.stdout.flush()
            self._open_line = not event.text.endswith("\n")
        elif isinstance(event, RoundStarted | TurnFinished | TurnErrored) and self._open_line:
            click.echo()
            self._open_line = False
        if isinstance(event, TurnFinished) and event.result is not None and not event.result.text:
            click.echo(_without_text(event.result))


def _without_text(result: TurnResult) -> str:
    pending = ", ".join(call["name"] for call in result.pending)
    return f"({result.stop_reason}: {STOP_REASONS[result.stop_reason]}{f': {pending}' if pending else ''})"


def _tell_degradations(result: TurnResult) -> None:
    for one in result.degradations:
        click.echo(f"degraded ({one.kind}): {one.reason}", err=True)
    if result.stop_reason not in CODES and result.text:
        click.echo(_without_text(result), err=True)


def _quiet_logging() -> None:
    """The command tells degradations itself; without this, logging's last resort would print them a second time."""
    logger = logging.getLogger("symfonic.turn")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())

"""An answer as people read it: printed as it comes, with what was given up on the way."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import click

from symfonic.host.cli._exit import CODES
from symfonic.host.cli._terminal import shown
from symfonic.kernel._result import STOP_REASONS
from symfonic.kernel.events import Event, RoundStarted, TextDelta, TurnErrored, TurnFinished

if TYPE_CHECKING:
    from symfonic.kernel.turn import TurnResult

__all__ = ["AnswerPrinter", "quiet_logging", "tell_degradations"]


class AnswerPrinter:
    """Prints the answer as it comes; what a later round says starts on a line of its own."""

    def __init__(self) -> None:
        self._open_line = False

    def __call__(self, event: Event) -> None:
        """Print what one event brings."""
        if isinstance(event, TextDelta) and event.text:
            click.echo(shown(event.text), nl=False)
            sys.stdout.flush()
            self._open_line = not event.text.endswith("\n")
        elif isinstance(event, RoundStarted | TurnFinished | TurnErrored):
            self.end_line()
        if isinstance(event, TurnFinished) and event.result is not None and not event.result.text:
            click.echo(_without_text(event.result))

    def end_line(self) -> None:
        """What is printed next starts on a line of its own."""
        if self._open_line:
            click.echo()
            self._open_line = False


def _without_text(result: TurnResult) -> str:
    pending = ", ".join(call["name"] for call in result.pending)
    return f"({result.stop_reason}: {STOP_REASONS[result.stop_reason]}{f': {pending}' if pending else ''})"


def tell_degradations(result: TurnResult) -> None:
    """Tell on standard error what was given up, and the limit that ended an answer early."""
    for one in result.degradations:
        click.echo(shown(f"degraded ({one.kind}): {one.reason}"), err=True)
    if result.stop_reason not in CODES and result.text:
        click.echo(_without_text(result), err=True)


def quiet_logging() -> None:
    """The command tells degradations itself; without this, logging's last resort would print them a second time."""
    logger = logging.getLogger("symfonic.turn")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())

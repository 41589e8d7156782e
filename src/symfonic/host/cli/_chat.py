"""``chat``: turn after turn of one conversation, on one host."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from symfonic.host.cli._answer import AnswerPrinter, quiet_logging, tell_degradations
from symfonic.host.cli._conversation import Conversation, load_conversation
from symfonic.host.cli._exit import CODES, FAILED, Exit, error_json, json_errors, told
from symfonic.host.cli._interrupts import Interrupts
from symfonic.host.cli._lines import Lines, standard_input, typed
from symfonic.host.cli._opening import opened
from symfonic.host.cli._options import config_option, json_option
from symfonic.host.cli._slash import Talk, note, obey
from symfonic.kernel.errors import TurnFailed
from symfonic.kernel.request import TurnRequest

if TYPE_CHECKING:
    from symfonic.kernel.turn import TurnResult

__all__ = ["chat"]


@click.command()
@config_option
@click.option("--tenant", metavar="NAME", help="Whom the turns are for.")
@click.option(
    "--conversation-id", metavar="ID", help="Stands in every event. Default: the loaded file's, else a fresh one."
)
@click.option(
    "--load", metavar="FILE", type=click.Path(path_type=Path), help="Go on with a conversation that /save kept."
)
@json_option
def chat(
    config: Path | None, tenant: str | None, conversation_id: str | None, load: Path | None, *, as_json: bool
) -> None:
    """Talk to the deployment, a line a turn; /help lists what else a line may say.

    Ctrl-C interrupts an answer, and ends the session at the prompt. Lines may be piped in; standard output carries the
    answers alone, with --json each turn's result as one line, and the exit code is 1 if any of these turns failed.
    """
    quiet_logging()
    with json_errors(wanted=as_json, speaks=True):
        conversation = Conversation() if load is None else load_conversation(load)
        if conversation_id is not None:
            conversation = attrs.evolve(conversation, id=conversation_id)
        try:
            asyncio.run(_chat(config, conversation, tenant, as_json=as_json))
        except KeyboardInterrupt:
            raise Exit(CODES["cancelled"]) from None


async def _chat(config: Path | None, conversation: Conversation, tenant: str | None, *, as_json: bool) -> None:
    async with opened(config) as host:
        talk = Talk(host=host, conversation=conversation, as_json=as_json)
        with Interrupts() as interrupts:
            await _Session(talk, tenant, interrupts).run()


class _Session:
    """Reads lines and answers them.

    Args:
        talk: The conversation.
        tenant: Whom its turns are for.
        interrupts: Ctrl-C.
    """

    def __init__(self, talk: Talk, tenant: str | None, interrupts: Interrupts) -> None:
        self._talk = talk
        self._tenant = tenant
        self._interrupts = interrupts
        self._lines = Lines(standard_input())
        self._prompts = sys.stdin is not None and sys.stdin.isatty()
        self._failed = False

    async def run(self) -> None:
        """Until the input ends.

        Raises:
            Exit: ``/quit``, or Ctrl-C at the prompt; a turn of a piped session failed.
        """
        if self._prompts:
            note("/help lists the commands, Ctrl-D ends.")
        try:
            while (line := await self._line()) is not None:
                if line.startswith("/"):
                    obey(self._talk, line)
                elif line.strip():
                    await self._answer(line)
        except Exit as end:
            if end.code:
                raise
        # A script must learn of it; a person at a terminal has, and went on.
        if self._failed and not self._prompts:
            raise Exit(FAILED)

    async def _line(self) -> str | None:
        if self._prompts:
            click.echo("> ", nl=False, err=True)
        try:
            line = await self._lines.next()
        except asyncio.CancelledError:
            if not self._interrupts.taken():
                raise
            self._leave_line()
            raise Exit(CODES["cancelled"]) from None
        if line is None:
            self._leave_line()
        return typed(line) if line is not None and self._prompts else line

    def _leave_line(self) -> None:
        """A terminal's cursor stands behind the prompt, or behind the ``^C`` it echoed."""
        if self._prompts:
            note()

    async def _answer(self, prompt: str) -> None:
        """One turn; whatever ends it, the conversation goes on with its messages so far, which are valid."""
        talk, printer = self._talk, AnswerPrinter()
        history = talk.conversation.messages
        request = TurnRequest(prompt, history=history, tenant=self._tenant, conversation_id=talk.conversation.id)
        talk.events = []
        stream = talk.host.stream(request)
        fault: TurnFailed | None = None
        interrupted = False
        try:
            async with stream:
                async for event in stream:
                    talk.events.append(event)
                    if not talk.as_json:
                        printer(event)
        except TurnFailed as failed:
            fault = failed
        except asyncio.CancelledError:
            if not self._interrupts.taken():
                raise
            interrupted = True
            self._leave_line()
            printer.end_line()
        result = stream.partial
        # A turn that was over before it took the history in has no messages at all.
        talk.conversation = attrs.evolve(talk.conversation, messages=result.messages or history)
        self._tell(result, fault, interrupted=interrupted)

    def _tell(self, result: TurnResult, fault: TurnFailed | None, *, interrupted: bool) -> None:
        if self._talk.as_json:
            self._talk.print_json(result.to_json() if fault is None else error_json(fault))
        else:
            tell_degradations(result)
        if fault is not None:
            self._failed = True
            note(told(fault))
        if fault is not None or interrupted:
            kept = len(self._talk.conversation.messages)
            note(f"({'failed' if fault else 'interrupted'}; the conversation goes on with the {kept} messages so far)")

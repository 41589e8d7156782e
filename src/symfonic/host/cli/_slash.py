"""What a line that starts with a slash asks of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from symfonic.host.cli._conversation import Conversation, load_conversation, save_conversation
from symfonic.host.cli._exit import Exit, told
from symfonic.host.cli._options import drawing
from symfonic.host.cli._terminal import shown
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import DocumentError
from symfonic.kernel.events import Event, PaletteBound, StageTraced

if TYPE_CHECKING:
    from symfonic.host.compose import Host

__all__ = ["Talk", "note", "obey"]


@attrs.define(eq=False, kw_only=True)
class Talk:
    """A conversation under way.

    Args:
        host: Runs its turns.
        conversation: What was said so far.
        as_json: Whether all that is printed on standard output is one JSON document a line.
        events: The last turn's, in order; empty before the first.
    """

    host: Host
    conversation: Conversation
    as_json: bool = False
    events: list[Event] = attrs.field(factory=list)

    def turn_to(self, conversation: Conversation) -> None:
        """Go on with another conversation; there is no last turn then."""
        self.conversation, self.events = conversation, []

    def print_json(self, value: object) -> None:
        """Print a JSON document on a line of its own."""
        click.echo(json.dumps(value, ensure_ascii=False, default=str))


def note(text: str = "") -> None:
    """Tell the person something beside the answers, on standard error."""
    click.echo(shown(text), err=True)


def obey(talk: Talk, line: str) -> None:
    """Do what a slash command says; what cannot be done is told, and the conversation is as it was.

    Raises:
        Exit: The command ends the session.
    """
    name, _, argument = line[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        hint = did_you_mean(f"/{name}", [f"/{known}" for known in COMMANDS])
        note(f"there is no command /{name}; {hint} (a text of yours that starts with a slash: put a blank before it)")
        return
    try:
        command.run(talk, argument.strip())
    except DocumentError as error:
        note(told(error))


def _trace(talk: Talk, _: str) -> None:
    if not talk.events:
        note("there was no turn yet")
    elif talk.as_json:
        talk.print_json({"events": [event.to_json() for event in talk.events]})
    else:
        drawing().print_trace(talk.events, talk.host.provenance)


def _tools(talk: Talk, _: str) -> None:
    rows = _tool_rows(talk)
    if talk.as_json:
        talk.print_json({"tools": rows})
    else:
        drawing().print_tools(rows)


def _tool_rows(talk: Talk) -> list[dict[str, object]]:
    """The plan's tools in order; ``offered`` is None where there was no turn."""
    offered = {name for event in talk.events if isinstance(event, PaletteBound) for name in event.binding.offered}
    why: dict[str, tuple[str, ...]] = {}
    for event in talk.events:
        why.update((isinstance(event, StageTraced) and event.why) or {})
    provenance = talk.host.provenance
    return [
        {
            "name": name,
            "runs": str(tool.runs),
            "contributor": str(provenance.tools[name]),
            "offered": name in offered if talk.events else None,
            "why": list(why.get(name, ())) if name in offered else [],
        }
        for name, tool in talk.host.plan.bindings.toolset.by_name.items()
    ]


def _save(talk: Talk, argument: str) -> None:
    path = _file(argument, "save")
    save_conversation(path, talk.conversation)
    note(f"saved {_count(talk.conversation)} to {path}")


def _load(talk: Talk, argument: str) -> None:
    path = _file(argument, "load")
    talk.turn_to(load_conversation(path))
    note(f"loaded {_count(talk.conversation)} from {path}")


def _file(argument: str, command: str) -> Path:
    if not argument:
        message = f"/{command} FILE: name the file"
        raise DocumentError(message)
    try:
        return Path(argument).expanduser()
    except RuntimeError as error:  # a user nobody knows
        raise DocumentError(str(error), source=argument) from error


def _count(conversation: Conversation) -> str:
    count = len(conversation.messages)
    return f"{count} message{'' if count == 1 else 's'}"


def _new(talk: Talk, _: str) -> None:
    talk.turn_to(Conversation())
    note("a new conversation")


def _help(_: Talk, __: str) -> None:
    for name, command in COMMANDS.items():
        note(f"  /{name} {command.argument}".ljust(16) + command.summary)
    note("Every other line is said to the model. Ctrl-C while it answers interrupts the answer; Ctrl-D ends.")
    note("There is no line editing beyond the terminal's own: arrow keys do nothing.")


def _quit(_: Talk, __: str) -> None:
    raise Exit(0)


@attrs.frozen
class _Command:
    run: Callable[[Talk, str], None]
    summary: str
    argument: str = ""


COMMANDS: Mapping[str, _Command] = {
    "trace": _Command(_trace, "the last turn as a tree"),
    "tools": _Command(_tools, "the plan's tools; those offered in the last turn are marked, with the reasons"),
    "save": _Command(_save, "keep the conversation in a file", "FILE"),
    "load": _Command(_load, "go on with the conversation of a file", "FILE"),
    "new": _Command(_new, "begin a new conversation"),
    "help": _Command(_help, "this list"),
    "quit": _Command(_quit, "end"),
}
"""Name to command, in the order the help lists them."""

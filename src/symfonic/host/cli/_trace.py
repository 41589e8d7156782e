"""A turn as a tree: what each phase did, which tools were offered and why, what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Sized

from rich.text import Text
from rich.tree import Tree

from symfonic.host.cli._tables import console
from symfonic.host.cli._terminal import shown
from symfonic.host.provenance import Provenance
from symfonic.kernel.events import (
    Degraded,
    Event,
    ModelResponded,
    PaletteBound,
    RoundStarted,
    StageTraced,
    ToolCalled,
    ToolRefused,
    ToolReturned,
    TurnErrored,
    TurnFinished,
    TurnStarted,
)
from symfonic.kernel.phases import Phase

__all__ = ["print_trace", "trace_tree"]

MAX_SHOWN = 100
"""Characters of arguments and results that are shown."""
MAX_LISTED = 12
"""Offered tools that are listed one by one."""

_MARKS = {"ok": ("ok", "green"), "denied": ("DENIED", "bold red"), "failed": ("FAILED", "bold red")}


def print_trace(events: Sequence[Event], provenance: Provenance) -> None:
    """Print the tree on standard output."""
    out = console()
    out.print()
    out.print(trace_tree(events, provenance))


def trace_tree(events: Sequence[Event], provenance: Provenance) -> Tree:
    """The tree of one turn.

    Args:
        events: All events of the turn, in order.
        provenance: Who contributed what.
    """
    return _Tree(provenance).grown(events)


class _Tree:
    """A tree under construction: where the next event's line goes."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        self._root = Tree("turn", guide_style="dim")
        self._rounds: dict[int, Tree] = {}
        self._calls: dict[str, Tree] = {}
        self._phases: dict[str, Tree] = {}
        self._why: Mapping[str, tuple[str, ...]] = {}
        self._choice: str | None = None

    def grown(self, events: Sequence[Event]) -> Tree:
        """The whole tree."""
        for event in events:
            self._add(event)
        return self._root

    def _add(self, event: Event) -> None:
        if isinstance(event, TurnStarted):
            self._root.label = Text(f"turn {event.turn_id[:8]}", "bold")
            self._choice = event.tool_choice
        elif isinstance(event, StageTraced):
            self._add_stage(event)
        elif isinstance(event, RoundStarted):
            self._rounds[event.round] = self._root.add(Text(f"round {event.round}", "bold"))
        elif isinstance(event, PaletteBound):
            self._add_palette(event)
        elif isinstance(event, ModelResponded):
            self._rounds[event.round].add(_model_line(event))
        elif isinstance(event, ToolCalled | ToolRefused | ToolReturned):
            self._add_call(event)
        elif isinstance(event, Degraded):
            where = self._rounds.get(event.round or 0, self._root)
            where.add(Text(shown(f"degraded ({event.kind}): {event.reason}"), "yellow"))
        elif isinstance(event, TurnFinished | TurnErrored):
            self._root.add(_end_line(event))

    def _add_stage(self, event: StageTraced) -> None:
        self._why = {**self._why, **(event.why or {})}
        where = self._place(event)
        word, style = _MARKS[event.status]
        outcome = _outcome(event)
        owner = self._provenance.stages.get(event.stage, "")
        line = Text.assemble((event.stage, "cyan"), f"  {owner}  {_ms(event.elapsed_s)}  ", (word, style), outcome)
        node = where.add(line)
        if event.error:
            node.add(Text(shown(event.error), "red"))
        if event.declined:
            node.add(Text(shown(event.declined), "yellow"))
        if event.would_offer is not None:
            node.add(Text(f"would offer {len(event.would_offer)}: {_listed(event.would_offer, self._why)}"))

    def _place(self, event: StageTraced) -> Tree:
        if event.tool_call_id is not None:
            return self._call_node(event.tool_call_id, event.round or 0)
        parent = self._root if event.round is None else self._rounds[event.round]
        key = f"{event.round}/{event.phase}"
        if key not in self._phases:
            self._phases[key] = parent.add(Text(event.phase))
        return self._phases[key]

    def _add_palette(self, event: PaletteBound) -> None:
        binding = event.binding
        offered = Text(f"offered {len(binding.offered)} of {event.palette} tools")
        if event.schema_tokens_offered is not None:
            offered.append(f", {event.schema_tokens_offered:,} schema tokens")
        if event.schema_tokens_saved is not None:
            offered.append(f", {event.schema_tokens_saved:,} saved", "green" if event.schema_tokens_saved else "")
        if binding.forced:
            offered.append(f", forced to call {binding.forced}", "magenta")
        node = self._rounds[event.round].add(offered)
        if event.round > 1 or not binding.offered:
            return
        for name in binding.offered[:MAX_LISTED]:
            node.add(Text.assemble((name, "cyan"), f"  {self._reasons(name, binding.forced)}".rstrip()))
        if len(binding.offered) > MAX_LISTED:
            node.add(Text(f"and {len(binding.offered) - MAX_LISTED} more", "dim"))

    def _reasons(self, name: str, forced: str | None) -> str:
        """Why a tool is offered; a force is the reason of last resort."""
        if name in self._why or name != forced:
            return shown("; ".join(self._why.get(name, ())))
        return "forced by the request" if name == self._choice else "forced"

    def _call_node(self, call_id: str, number: int) -> Tree:
        if call_id not in self._calls:
            self._calls[call_id] = self._rounds[number].add(Text("call"))
        return self._calls[call_id]

    def _add_call(self, event: ToolCalled | ToolRefused | ToolReturned) -> None:
        node = self._call_node(event.tool_call_id, event.round)
        if isinstance(event, ToolCalled):
            node.label = Text.assemble("call ", (event.tool, "cyan"), f"({_args(event.args)})")
        elif isinstance(event, ToolRefused):
            node.label = Text.assemble("call ", (shown(event.tool), "cyan"), f"({_args(event.args)})")
            node.add(Text(f"{event.cause}: {_cut(event.reason or '')}", "red"))
        else:
            style = "green" if event.status == "success" else "red"
            line = Text.assemble((event.status, style), f"  {_ms(event.elapsed_s)}  {_cut(event.content or '')}")
            returned = node.add(line)
            if event.where is not None:
                returned.add(Text(f"raised {event.error_type} at {event.where}", "red"))


def _model_line(event: ModelResponded) -> Text:
    usage = event.usage
    tokens = "" if usage is None else f", {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    did = (
        f"called {', '.join(event.tool_calls)}"
        if event.tool_calls
        else f"answered {_count(event.text_chars, 'character')}"
    )
    model = f"model {shown(event.model)}" if event.model else "model"
    return Text(f"{model} {shown(did)}, {_ms(event.elapsed_s)}{tokens}")


def _outcome(event: StageTraced) -> str:
    """What a stage answered with, in a word; what a resolver decided stands below its line."""
    if event.phase == Phase.PROMPT_ASSEMBLY and event.trace is not None and event.trace.outcome is not None:
        given = event.trace.outcome
        return f"  {_count(len(given) if isinstance(given, Sized) else 1, 'message')} added"
    return "" if event.outcome in (None, "Resolution") else f"  {event.outcome}"


def _end_line(event: TurnFinished | TurnErrored) -> Text:
    if isinstance(event, TurnErrored):
        return Text(f"failed after {_count(event.rounds, 'round')}, {_ms(event.elapsed_s)}: {event.error}", "bold red")
    usage = event.usage
    tokens = "" if usage is None else f", {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    degraded = f", {_count(event.degradations, 'degradation')}" if event.degradations else ""
    line = f"{event.stop_reason} after {_count(event.rounds, 'round')}, {_ms(event.elapsed_s)}{tokens}{degraded}"
    return Text(line, "bold" if event.stop_reason in ("completed", "deferred") else "bold yellow")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _args(args: Mapping[str, object] | str | None) -> str:
    if isinstance(args, str):
        return _cut(args)
    shown = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in (args or {}).items())
    return _cut(", ".join(shown))


def _cut(text: str) -> str:
    flat = shown(" ".join(text.split()))
    return flat if len(flat) <= MAX_SHOWN else f"{flat[:MAX_SHOWN]}... ({len(flat):,} characters)"


def _listed(names: Sequence[str], why: Mapping[str, tuple[str, ...]]) -> str:
    shown = [f"{name} ({'; '.join(why[name])})" if name in why else name for name in names[:MAX_LISTED]]
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(shown) + more

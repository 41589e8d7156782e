"""Tables for people, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from symfonic.host.cli._types import readable
from symfonic.host.selection import PluginState

__all__ = ["console", "print_plan", "print_plugin", "print_plugins", "print_tools"]

PIPED_WIDTH = 160
"""Columns where no terminal tells its own: wide enough that names are not broken."""

_STATE_STYLES = {"active": "green", "off": "dim", "failed": "bold red"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line, as everywhere; rich would end the process with exit code 1."""
        raise BrokenPipeError


def console() -> Console:
    """A console on standard output; without a terminal it writes no colours and does not wrap at 80 columns."""
    return _Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table


def print_plugins(states: Sequence[PluginState]) -> None:
    """One line a plugin, then what is wrong with the failed ones."""
    out = console()
    if not states:
        out.print("no plugin is installed; pip install one, such as symfonic-tools")
        return
    rows = [
        (state.id, Text(state.state, _STATE_STYLES[state.state]), state.reason or "", state.dist, state.version)
        for state in states
    ]
    out.print(_table(("plugin", "state", "reason", "distribution", "version"), rows))
    for state in states:
        if state.message:
            out.print(Text(f"\n{state.message}"))


def print_plugin(row: Mapping[str, object]) -> None:
    """Everything about one plugin."""
    out = console()
    out.print(Text.assemble((str(row["id"]), "bold"), f"  {row['dist']} {row['version']}  {row['module']}"))
    out.print(Text(str(row["state"]), _STATE_STYLES[str(row["state"])]))
    if row.get("message"):
        out.print(Text(str(row["message"])))
    if "contributions" not in row:
        if row["state"] == "off":
            out.print(Text("a plugin that is off is not imported, so what it contributes is not known"))
        return
    contributions = _rows(row["contributions"], ("kind", "id", "summary"))
    out.print(_table(("contribution", "id", "summary"), contributions))
    granted = ", ".join(map(str, row["grants"])) or "none"  # type: ignore[call-overload]  # a list by construction
    out.print(Text(f"granted effects: {granted}"))
    config = [
        (key["key"], readable(key["type"]), "(required)" if key["required"] else _value(key["default"]))
        for key in row["config"]  # type: ignore[attr-defined]  # a list by construction
    ]
    if config:
        out.print(_table(("config key", "type", "default"), config))


def print_plan(row: Mapping[str, object]) -> None:
    """The compiled plan."""
    out = console()
    out.print(Text.assemble(("fingerprint ", "bold"), str(row["fingerprint"])))
    out.print(Text(f"model from {row['model']}; forcing answered by {row['forcing'] or 'nobody'}\n"))
    stages = [
        (stage["phase"], stage["stage"], ", ".join(stage["effects"]) or "-", _order(stage), stage["contributor"])
        for stage in row["stages"]  # type: ignore[attr-defined]  # a list by construction
    ]
    out.print(_table(("phase", "stage", "effects", "order", "contributor"), stages))
    for line in row["dropped_orderings"]:  # type: ignore[attr-defined]  # a list by construction
        out.print(Text(f"dropped: {line}"))
    out.print()
    out.print(_table(("tool", "run by", "contributor"), _rows(row["tools"], ("name", "runs", "contributor"))))
    for what in ("routers", "sinks"):
        named = row[what]
        if named:
            out.print(Text(f"\n{what}: " + "; ".join(f"{name} from {owner}" for name, owner in named.items())))  # type: ignore[attr-defined]  # a dict by construction
    limits = ", ".join(f"{name} {value}" for name, value in row["limits"].items() if value is not None)  # type: ignore[attr-defined]  # a dict by construction
    out.print(Text(f"\nlimits: {limits}"))


def print_tools(rows: Sequence[Mapping[str, object]]) -> None:
    """The plan's tools by contributor, those the last turn offered marked, with the reasons."""
    out = console()
    if not rows:
        out.print("the plan has no tools")
        return
    by_owner: dict[object, list[Mapping[str, object]]] = {}
    for row in rows:
        by_owner.setdefault(row["contributor"], []).append(row)
    for owner, owned in by_owner.items():
        cells = [("*" if row["offered"] else "", row["name"], row["runs"], _why(row)) for row in owned]
        out.print(Text(str(owner), "bold"))
        out.print(_table(("", "tool", "run by", "why"), cells))
    if any(row["offered"] for row in rows):
        out.print(Text("* offered in the last turn"))


def _value(default: object) -> str:
    """A default as the table shows it."""
    if isinstance(default, bool):
        return str(default).lower()
    return "none" if default is None else str(default)


def _why(row: Mapping[str, object]) -> str:
    return "; ".join(row["why"])  # type: ignore[arg-type]  # a list of texts by construction


def _order(stage: Mapping[str, object]) -> str:
    said = [f"{word} {', '.join(stage[word])}" for word in ("before", "after") if stage[word]]  # type: ignore[arg-type]  # lists by construction
    return "; ".join(said)


def _rows(listed: object, keys: Sequence[str]) -> list[tuple[object, ...]]:
    return [tuple("" if row[key] is None else row[key] for key in keys) for row in listed]  # type: ignore[attr-defined]  # a list of dicts by construction

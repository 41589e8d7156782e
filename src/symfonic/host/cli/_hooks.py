"""``hooks``: the reference of the plugin page's hooks, from their own docstrings."""

from __future__ import annotations

import inspect

import click

from symfonic.host.cli._options import echo_json, json_option
from symfonic.plugin import HookSpecs
from symfonic.plugin._hooks import HOOK_KINDS

__all__ = ["hooks"]


@click.command()
@json_option
def hooks(*, as_json: bool) -> None:
    """List the hooks a plugin may implement: when each is called, how often, in which order, what a crash does."""
    rows = [
        {"hook": name, "returns": kind.__name__, "documentation": inspect.getdoc(getattr(HookSpecs, name)) or ""}
        for name, kind in HOOK_KINDS.items()
    ]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        click.echo(f"{row['hook']}(context) -> list of {row['returns']}, or None")
        text = row["documentation"].replace("``", "")
        click.echo("".join(f"    {line}".rstrip() + "\n" for line in text.splitlines()))

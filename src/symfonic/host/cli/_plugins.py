"""``plugins list`` and ``plugins show``: works with broken plugins about; imports only what is selected."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from symfonic.host.cli._exit import json_errors
from symfonic.host.cli._options import config_option, drawing, echo_json, json_option
from symfonic.host.config import CONFIG_ENV, Deployment, find_config, load_deployment
from symfonic.host.config_keys import config_keys
from symfonic.host.discovery import discover
from symfonic.host.selection import PluginState, Selected, plugin_states, select
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from symfonic.host.registry import LoadedPlugin

__all__ = ["plugins"]


@click.group()
def plugins() -> None:
    """See which plugins are installed, which the deployment selects, and what they contribute."""


@plugins.command("list")
@config_option
@json_option
def list_plugins(config: Path | None, *, as_json: bool) -> None:
    """List every installed and every selected plugin: active, off, or failed with its reason.

    Works without a deployment too: then every plugin is off.
    """
    with json_errors(wanted=as_json):
        states, _ = _states(config)
    if as_json:
        echo_json([attrs.asdict(state) for state in states])
        return
    drawing().print_plugins(states)


@plugins.command("show")
@click.argument("plugin_id", metavar="ID")
@config_option
@json_option
def show_plugin(plugin_id: str, config: Path | None, *, as_json: bool) -> None:
    """Show one plugin: who supplies it, its state, its contributions and its configuration keys.

    A plugin that is off is not imported, so its contributions are not known.
    """
    with json_errors(wanted=as_json):
        states, selected = _states(config)
        state = next((one for one in states if one.id == plugin_id), None)
        if state is None:
            known = [one.id for one in states]
            message = f"it is neither installed nor selected; {did_you_mean(plugin_id, known)}"
            raise PluginError(message, plugin=plugin_id, reason="missing")
    loaded = next((one for one in selected.loaded if one.id == plugin_id), None)
    described = {**attrs.asdict(state), **({} if loaded is None else _described(loaded))}
    if as_json:
        echo_json(described)
        return
    drawing().print_plugin(described)


def _states(config: Path | None) -> tuple[tuple[PluginState, ...], Selected]:
    installed = discover()
    deployment = _deployment(config)
    selected = Selected(loaded=()) if deployment is None else select(deployment, installed)
    return plugin_states(deployment, installed, selected), selected


def _deployment(config: Path | None) -> Deployment | None:
    """The deployment; None where none was named and none stands here."""
    try:
        file = find_config(config)
    except ConfigError:
        if config is not None or os.environ.get(CONFIG_ENV):
            raise
        return None
    return load_deployment(file)


def _described(plugin: LoadedPlugin) -> dict[str, object]:
    return {
        "contributions": [
            {"kind": type(given).__name__, "id": f"{plugin.id}.{given.id}", "summary": given.summary}
            for given in plugin.contributions
        ],
        "grants": sorted(plugin.grants),
        "config": [attrs.asdict(key, recurse=False) for key in config_keys(plugin.config_class)],
    }

"""``init``: a first symfonic.toml, from what is installed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from symfonic.host.cli._exit import json_errors
from symfonic.host.cli._options import config_option, echo_json, json_option
from symfonic.host.config import chosen_config
from symfonic.host.discovery import InstalledPlugin, discover
from symfonic.host.files import write_whole
from symfonic.host.models import is_class_path
from symfonic.host.registry import LoadedPlugin
from symfonic.host.starter import Starter, choose, model_uses
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError

__all__ = ["init"]


@click.command()
@click.option("--model", metavar="USE", help="[model] use: plugin:id of a plugin that is switched on, or module:Class.")
@click.option(
    "--with", "ids", metavar="ID", multiple=True, help="Switch a plugin on; may be given several times, in order."
)
@config_option
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@json_option
def init(model: str | None, ids: tuple[str, ...], config: Path | None, *, force: bool, as_json: bool) -> None:
    """Write a commented symfonic.toml from what is installed.

    Each installed plugin gets a block, switched off but for those of --with, and only these are imported.
    """
    file = chosen_config(config)
    with json_errors(wanted=as_json):
        _check_file(file, force=force)
        installed = discover()
        chosen = choose(ids, installed)
        if model is not None:
            _check_model(model, chosen, installed)
        starter = Starter(installed=installed, chosen=chosen, model=model)
        _write(file, starter)
    step = _next_step(file, config, starter.to_fill_in)
    on, off = [plugin.id for plugin in chosen], list(dict.fromkeys(plugin.id for plugin in starter.off))
    if as_json:
        echo_json({"file": str(file), "on": on, "off": off, "to_fill_in": starter.to_fill_in, "next": step})
        return
    click.echo(f"wrote {file}: switched on {', '.join(on) or 'no plugin'}, switched off {', '.join(off) or 'none'}")
    click.echo(f"next: {step}")


def _check_file(file: Path, *, force: bool) -> None:
    """Before any plugin is imported: whether the file may be written."""
    if os.path.lexists(file) and not force:
        raise ConfigError([f"{file} is there already; --force overwrites it, --config names another file"])


def _write(file: Path, starter: Starter) -> None:
    try:
        write_whole(file, starter.text())
    except OSError as error:
        raise ConfigError([f"{file} cannot be written: {error.strerror or type(error).__name__}"]) from error


def _check_model(model: str, chosen: Sequence[LoadedPlugin], installed: Sequence[InstalledPlugin]) -> None:
    """What can be said of a model without importing it.

    Raises:
        ConfigError: It is spelt as no model is, or names a plugin that has no such model, or is switched off.
    """
    uses = model_uses(chosen)
    if model in uses:
        return
    owner, _, name = model.partition(":")
    if owner in {plugin.id for plugin in chosen}:
        raise ConfigError([f"--model: plugin {owner!r} contributes no model {name!r}; {did_you_mean(model, uses)}"])
    ids = {plugin.id for plugin in installed}
    if owner in ids:
        raise ConfigError([f"--model: the plugin {owner!r} is switched off; add --with {owner}"])
    near = did_you_mean(model, [*uses, *(f"{one}:{name}" for one in ids)])
    if not is_class_path(model):
        raise ConfigError([f"--model: {model!r} is neither plugin:id nor module:Class; {near}"])
    top = owner.partition(".")[0]
    if top not in sys.modules and find_spec(top) is None:
        hint = f"; {near}" if near.startswith("did you") else ""
        click.echo(f"there is no module {top!r} yet; pip install {top.replace('_', '-')}{hint}", err=True)


def _next_step(file: Path, config: Path | None, missing: Sequence[str]) -> str:
    named = "" if config is None else f" --config {shlex.quote(str(config))}"
    fill = f"set {', '.join(missing)} in {file}, then " if missing else ""
    return f"{fill}symfonic-kernel plan{named}"

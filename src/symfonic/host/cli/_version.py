"""``version``."""

from __future__ import annotations

import platform

import click

from symfonic.host.cli._options import echo_json, json_option
from symfonic.host.discovery import kernel_version
from symfonic.plugin import API_VERSION

__all__ = ["version"]


@click.command()
@json_option
def version(*, as_json: bool) -> None:
    """Print the versions of the kernel, the plugin page and Python."""
    row = {"symfonic-kernel": kernel_version(), "plugin-api": API_VERSION, "python": platform.python_version()}
    if as_json:
        echo_json(row)
    else:
        click.echo("\n".join(f"{name} {value}" for name, value in row.items()))

"""Options several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from symfonic.host.config import CONFIG_ENV

__all__ = ["config_option", "echo_json", "json_option"]

F = TypeVar("F", bound=Callable[..., object])


def config_option(command: F) -> F:
    """``--config FILE``."""
    return click.option(
        "--config",
        "config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        default=None,
        help=f"The deployment's file. Default: {CONFIG_ENV}, then ./symfonic.toml.",
    )(command)


def json_option(command: F) -> F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def echo_json(value: object) -> None:
    """Print a value as JSON, in any script."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))

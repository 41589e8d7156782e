"""Options several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import click

from symfonic.host.config import CONFIG_ENV

__all__ = ["config_option", "drawing", "echo_json", "json_option"]

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


def drawing() -> ModuleType:
    """The functions that draw tables and trees.

    The one deferred place for rich, which costs a tenth of a second that help texts, JSON and errors need not pay.
    """
    from symfonic.host.cli import _drawing  # noqa: PLC0415

    return _drawing

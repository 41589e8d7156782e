"""How commands end: codes, and errors in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout

import click

from symfonic.host.cli._terminal import shown
from symfonic.kernel.errors import ConfigError, HostError, PluginError, PluginsRefused, SymfonicError, TurnFailed

__all__ = ["CODES", "Exit", "error_json", "exit_code", "json_errors", "told", "usage_json"]

CODES = {"completed": 0, "deferred": 0, "cancelled": 130}
"""Stop reason to exit code; every other one is a limit."""
FAILED = 1
LIMIT = 4


class Exit(Exception):
    """End the command with a code; everything was told already."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


def exit_code(error: BaseException) -> int:
    """The exit code an error ends the process with."""
    if isinstance(error, TurnFailed):
        return FAILED
    if isinstance(error, HostError) or _is_misconfigured(error):
        return 2
    return 3 if isinstance(error, PluginError) else 1


def _is_misconfigured(error: BaseException) -> bool:
    """Whether what a plugin is blamed for stands in the deployment's file: its table, its grants."""
    if isinstance(error, PluginsRefused):
        return all(isinstance(one, HostError) or _is_misconfigured(one) for one in error.exceptions)
    return isinstance(error, PluginError) and error.reason == "misconfigured"


def told(error: BaseException, *, debug_env: str = "") -> str:
    """An error in words fit for a terminal, with what caused a failed turn."""
    return shown(_told(error, debug_env))


def _told(error: BaseException, debug_env: str) -> str:
    if isinstance(error, TurnFailed):
        cause = error.__cause__.__cause__ if error.__cause__ is not None else None
        return f"error: {error}" + (f"\ncaused by {type(cause).__name__}: {cause}" if cause is not None else "")
    if isinstance(error, SymfonicError):
        return f"error: {error}"
    hint = f"; set {debug_env}=1 to see the traceback, and please report it" if debug_env else ""
    return f"internal error: {type(error).__name__}: {error}{hint}"


@contextmanager
def json_errors(*, wanted: bool, speaks: bool = False) -> Iterator[None]:
    """With ``--json``, an error of ours is told as JSON on standard output too.

    What plugins print meanwhile goes to standard error, so that standard output stays JSON.

    Args:
        wanted: Whether ``--json`` was given.
        speaks: Whether the command writes its own output meanwhile; then nothing is sent elsewhere.
    """
    try:
        with redirect_stdout(sys.stderr) if wanted and not speaks else nullcontext():
            yield
    except SymfonicError as error:
        if wanted:
            click.echo(json.dumps(error_json(error), ensure_ascii=False, indent=2))
        raise


def usage_json(error: click.ClickException) -> dict[str, object]:
    """A mistake on the command line as ``--json`` tells it."""
    row = {"type": type(error).__name__, "message": error.format_message(), "exit_code": error.exit_code}
    return {"error": row}


def error_json(error: SymfonicError) -> dict[str, object]:
    """An error as ``--json`` tells it."""
    row: dict[str, object] = {"type": type(error).__name__, "message": str(error), "exit_code": exit_code(error)}
    if isinstance(error, ConfigError):
        row["problems"] = list(error.problems)
    elif isinstance(error, ExceptionGroup):
        row["problems"] = [str(problem) for problem in error.exceptions]
    if isinstance(error, TurnFailed):
        row["result"] = error.result.to_json()
    return {"error": row}

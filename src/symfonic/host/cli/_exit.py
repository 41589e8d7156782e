"""How commands end: codes, and errors in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from symfonic.host.cli._terminal import shown
from symfonic.kernel.errors import ConfigError, HostError, PluginError, SymfonicError, TurnFailed

__all__ = ["CODES", "Exit", "error_json", "exit_code", "json_errors", "told"]

CODES = {"completed": 0, "deferred": 0, "cancelled": 130}
"""Stop reason to exit code; every other one is a limit."""
LIMIT = 4


class Exit(Exception):
    """End the command with a code; everything was told already."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


def exit_code(error: BaseException) -> int:
    """The exit code an error ends the process with."""
    if isinstance(error, TurnFailed):
        return 1
    if isinstance(error, HostError):
        return 2
    return 3 if isinstance(error, PluginError) else 1


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
def json_errors(*, wanted: bool) -> Iterator[None]:
    """With ``--json``, an error of ours is told as JSON on standard output too."""
    try:
        yield
    except SymfonicError as error:
        if wanted:
            click.echo(json.dumps(error_json(error), ensure_ascii=False, indent=2))
        raise


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

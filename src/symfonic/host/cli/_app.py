"""The commands, put together, and how they end."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from symfonic.host.cli._chat import chat
from symfonic.host.cli._exit import Exit, exit_code, told, usage_json
from symfonic.host.cli._hooks import hooks
from symfonic.host.cli._init import init
from symfonic.host.cli._options import echo_json
from symfonic.host.cli._plan import plan
from symfonic.host.cli._plugins import plugins
from symfonic.host.cli._run import run
from symfonic.host.cli._version import version
from symfonic.host.discovery import kernel_version
from symfonic.kernel._workers import workers

__all__ = ["app", "main"]

DEBUG_ENV = "SYMFONIC_TRACEBACK"


class _ReaderGone(Exception):
    """Nobody reads our output any more; click would make it exit code 1."""


class _App(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as gone:
            raise _ReaderGone from gone


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:  # click's shape of a callback
    if asked and not ctx.resilient_parsing:
        click.echo(f"symfonic-kernel {kernel_version()}")
        ctx.exit()


@click.group(
    cls=_App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 answered or deferred, 1 turn failed, 2 usage or configuration, 3 plugin, 4 limit reached, 130 interrupted.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def app() -> None:
    """Run an LLM agent's turns from installed plugins, chosen by symfonic.toml.

    The deployment is the file given by --config, else the one SYMFONIC_CONFIG names, else ./symfonic.toml.
    """


for command in (init, run, chat, plan, plugins, hooks, version):
    app.add_command(command)


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point of the console script; ends the process with the command's exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a replaced stream may have none
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
    code = _run(argv)
    if argv is None and workers().abandoned:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """End the console script's process without the interpreter's own shutdown.

    A thread that a hanging tool still holds may be inside a write to standard output, and a shutdown that meets it there
    aborts the process.
    """
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _tell_usage(error: click.ClickException) -> None:
    """A mistake on the command line, in the words every other error has."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    text = error.format_message()
    if ctx is None or isinstance(error, click.exceptions.NoArgsIsHelpError):  # the latter's text is the help itself
        click.echo(text if ctx else f"error: {text}", err=True)
        return
    click.echo(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n\nerror: {text}", err=True)


def _run(argv: Sequence[str] | None) -> int:
    try:
        app.main(args=None if argv is None else list(argv), prog_name="symfonic-kernel", standalone_mode=False)
        sys.stdout.flush()
    except Exit as end:
        return end.code
    except click.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except click.ClickException as error:
        if "--json" in (sys.argv[1:] if argv is None else argv):
            echo_json(usage_json(error))
        _tell_usage(error)
        return error.exit_code
    except (BrokenPipeError, _ReaderGone):
        # Whoever read our output has gone, `| head` for one: nothing is left to tell, and nobody to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001  # the last boundary: a person gets words, not a traceback
        if os.environ.get(DEBUG_ENV):
            traceback.print_exc()
        click.echo(told(error, debug_env=DEBUG_ENV), err=True)
        return exit_code(error)
    return 0

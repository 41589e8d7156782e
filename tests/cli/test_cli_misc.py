"""``hooks``, ``version``, help, and how every command ends."""

from __future__ import annotations

import inspect
import re
import sys

import click
import pytest
from tests.cli.conftest import Cli
from tests.cli.support import deployment
from tests.host.support import FakeSite

from symfonic.host.cli._app import app
from symfonic.host.cli._exit import CODES, Exit, error_json, exit_code, told
from symfonic.host.discovery import kernel_version
from symfonic.kernel import errors
from symfonic.kernel.errors import ConfigError, ModelFailed, PluginError, PluginsRefused, SymfonicError, TurnFailed
from symfonic.kernel.turn import STOP_REASONS, TurnResult
from symfonic.plugin import API_VERSION, HookSpecs
from symfonic.plugin._hooks import HOOK_KINDS


def test_hooks_prints_the_reference(cli: Cli) -> None:
    """Every hook with what it returns and its own documentation, whole."""
    done = cli("hooks")
    assert (done.code, done.err) == (0, "")
    for name, kind in HOOK_KINDS.items():
        assert f"{name}(context) -> list of {kind.__name__}, or None\n" in done.out
        for line in (inspect.getdoc(getattr(HookSpecs, name)) or "").replace("``", "").splitlines():
            assert f"    {line}".rstrip() in done.out.splitlines()
    rows = cli("hooks", "--json").json
    assert [(row["hook"], row["returns"]) for row in rows] == [
        (name, kind.__name__) for name, kind in HOOK_KINDS.items()
    ]
    assert all(row["documentation"].count("\n") >= 5 for row in rows)


def test_version_prints_three_versions(cli: Cli) -> None:
    """Kernel, plugin page, Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    wanted = {"symfonic-kernel": kernel_version(), "plugin-api": API_VERSION, "python": python}
    assert cli("version", "--json").json == wanted
    assert cli("--version").out == f"symfonic-kernel {kernel_version()}\n"
    assert cli("version").out.splitlines() == [f"{name} {value}" for name, value in wanted.items()]


def commands() -> list[tuple[str, ...]]:
    """Every command there is."""
    found: list[tuple[str, ...]] = []
    for name, command in app.commands.items():
        if isinstance(command, click.Group):
            found.extend((name, sub) for sub in command.commands)
        found.append((name,))
    return found


@pytest.mark.parametrize("command", [(), *commands()])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_d6_help_works_with_broken_plugins_about(site: FakeSite, cli: Cli, command: tuple[str, ...], flag: str) -> None:
    """No file is read and no plugin imported for a help text."""
    site.plugin("bad", "raise RuntimeError('boom')")
    site.deployment("[model\n")
    done = cli(*command, flag)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: symfonic-kernel")


def test_every_command_that_prints_has_json() -> None:
    """``--json`` everywhere."""
    for path in commands():
        command: click.Command = app
        for name in path:
            assert isinstance(command, click.Group)
            command = command.commands[name]
        if not isinstance(command, click.Group):
            assert "as_json" in {parameter.name for parameter in command.params}, path
            assert command.help


def test_the_help_names_the_exit_codes(cli: Cli) -> None:
    """Scripts are written against them."""
    text = " ".join(cli("--help").out.split())
    assert (
        "0 answered or deferred, 1 turn failed, 2 usage or configuration, 3 plugin, 4 limit reached, 130 interrupted"
        in text
    )


def test_no_command_at_all_is_a_usage_mistake(cli: Cli) -> None:
    """Help, and exit code 2."""
    done = cli()
    assert done.code == 2
    assert "Usage: symfonic-kernel" in done.out + done.err


# -- exit codes -------------------------------------------------------------------------------------------------------

CODES_OF = {"HostError": 2, "PluginError": 3, "TurnFailed": 1}


def every_error() -> list[type[SymfonicError]]:
    """Every class of the tree that is raised by itself."""
    return [kind for name in errors.__all__ if (kind := getattr(errors, name)) not in (SymfonicError, TurnFailed)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_its_exit_code(kind: type[SymfonicError]) -> None:
    """By whose fault it is: the deployment's 2, a plugin's 3, else a failed turn's 1."""
    error = kind.__new__(kind, [PluginError("x")]) if issubclass(kind, ExceptionGroup) else kind.__new__(kind)
    wanted = 2 if issubclass(kind, errors.HostError) else 3 if issubclass(kind, PluginError) else 1
    assert exit_code(error) == wanted


def test_a_failed_turn_is_1_whatever_caused_it() -> None:
    """A stage that crashed is no broken deployment."""
    assert exit_code(TurnFailed("x", TurnResult(stop_reason="completed"))) == 1
    assert exit_code(RuntimeError()) == 1


def test_every_stop_reason_has_an_exit_code() -> None:
    """Answered, deferred, interrupted; every other reason is a limit's."""
    assert set(CODES) <= set(STOP_REASONS)
    assert {reason for reason in STOP_REASONS if reason not in CODES and not reason.endswith("_limit")} <= {
        "suspended",
        "failed",
    }
    assert Exit(4).code == 4


def test_errors_in_words() -> None:
    """A failed turn with what caused it, ours as they are, others as internal with the way to see more."""
    cause = ModelFailed("the model raised")
    cause.__cause__ = OSError("refused")
    failed = TurnFailed("it ended", TurnResult(stop_reason="completed"))
    assert told(failed) == "error: it ended"
    failed.__cause__ = cause
    assert told(failed) == "error: it ended\ncaused by OSError: refused"
    assert told(ConfigError(["a: b"])) == "error: a: b"
    assert told(KeyError("x")) == "internal error: KeyError: 'x'"
    assert told(KeyError("x"), debug_env="E").endswith("; set E=1 to see the traceback, and please report it")


def test_errors_as_json() -> None:
    """Type, text, exit code; every problem of a group; a failed turn's result."""
    refused = PluginsRefused([PluginError("x", plugin="a"), ConfigError(["y"])])
    assert error_json(refused)["error"] == {
        "type": "PluginsRefused",
        "message": str(refused),
        "exit_code": 3,
        "problems": ["plugin 'a', failed: x", "y"],
    }
    row = error_json(TurnFailed("z", TurnResult(stop_reason="completed")))["error"]
    assert isinstance(row, dict)
    assert row["result"]["stop_reason"] == "completed"


def test_a_fault_of_our_own_is_words_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error shows its type and how to see the traceback, which is shown only then."""
    from symfonic.host.cli import main

    def broken() -> str:
        raise LookupError("ours")

    monkeypatch.setattr("symfonic.host.cli._version.kernel_version", broken)
    for debug in ("", "1"):
        monkeypatch.setenv("SYMFONIC_TRACEBACK", debug)
        with pytest.raises(SystemExit) as ended:
            main(["version"])
        assert ended.value.code == 1
        err = capsys.readouterr().err
        assert "internal error: LookupError: ours; set SYMFONIC_TRACEBACK=1" in err
        assert ("Traceback" in err) is bool(debug)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_anywhere_is_130(cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Not only while a turn runs."""

    def interrupted() -> str:
        raise error

    monkeypatch.setattr("symfonic.host.cli._version.kernel_version", interrupted)
    assert cli("version").code == 130


def test_a_replaced_standard_output_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream without ``reconfigure``, as notebooks and test tools put there, is no crash."""
    import io

    from symfonic.host.cli import main

    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as ended:
        main(["version"])
    assert ended.value.code == 0
    assert "plugin-api" in out.getvalue()


def test_colours_are_off_when_piped(site: FakeSite) -> None:
    """Whatever the terminal around could show."""
    deployment(site, "call_tool('add', x=1)", "'done'")
    for args in (("run", "hi", "--trace"), ("plan",), ("plugins", "list"), ("plugins", "show", "kit")):
        done = site.cli(*args, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
        assert done.returncode == 0
        assert b"\x1b" not in done.stdout + done.stderr
        assert max(map(len, done.stdout.decode().splitlines())) <= 160


def test_the_console_script_and_the_module_are_the_same(site: FakeSite) -> None:
    """``python -m symfonic.host.cli`` works where the script's folder is not on PATH."""
    done = site.run("-m", "symfonic.host.cli", "version")
    assert done.returncode == 0
    assert re.search(rb"^plugin-api ", done.stdout, re.MULTILINE)

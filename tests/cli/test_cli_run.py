"""``symfonic-kernel run``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, Done
from tests.cli.support import deployment, stage
from tests.host.support import FakeSite

ADD = "call_tool('add', x=2, y=3)"


# -- answered ---------------------------------------------------------------------------------------------------------


def test_the_answer_is_printed_and_nothing_else(site: FakeSite, cli: Cli) -> None:
    """The answer and a newline on standard output, nothing on standard error, exit code 0."""
    deployment(site, "'¿sí? はい'")
    assert cli("run", "hi") == Done(0, "¿sí? はい\n", "")


def test_text_of_several_rounds_stands_on_lines_of_its_own(site: FakeSite, cli: Cli) -> None:
    """What the model says beside a tool call does not run into the answer."""
    deployment(site, "AIMessage('let me see', tool_calls=[dict(name='add', args={'x': 1}, id='1')])", "'it is 1'")
    source = site.root / "fake_said.py"
    source.write_text(source.read_text() + "\nfrom langchain_core.messages import AIMessage\n")
    assert cli("run", "hi") == Done(0, "let me see\nit is 1\n", "")


def test_an_answer_without_text_says_why(site: FakeSite, cli: Cli) -> None:
    """An empty answer is not told as nothing."""
    deployment(site, "''")
    done = cli("run", "hi")
    assert done.code == 0
    assert done.out.startswith("(completed: ")


def test_deferred_calls_are_told_and_are_no_failure(site: FakeSite, cli: Cli) -> None:
    """A tool that runs elsewhere ends the turn with exit code 0 and its name."""
    deployment(site, "call_tool('outside')")
    done = cli("run", "hi")
    assert done.code == 0
    assert done.out.startswith("(deferred: ")
    assert done.out.endswith(": outside)\n")


def test_a_tool_that_does_not_exist_or_fails_ends_no_turn(site: FakeSite, cli: Cli) -> None:
    """The model is told, and the turn goes on to its answer."""
    deployment(site, "call_tool('nope')", "call_tool('fail')", "call_tool('add', x='many')", "'well'")
    done = cli("run", "hi", "--json")
    assert (done.code, done.json["text"]) == (0, "well")
    assert "sk-secret" not in done.out


# -- prompts ----------------------------------------------------------------------------------------------------------


ECHO = "lambda call: f'{len(call.messages[-1].content)} {call.messages[-1].content[:20]!a}'"


@pytest.mark.parametrize("prompt", ["", " ", "\x00\x07\x1b[31m\r\n", "\U0001f600", "--"])
def test_any_text_is_a_prompt(site: FakeSite, cli: Cli, prompt: str) -> None:
    """Empty, control characters, emoji: each reaches the model as it is."""
    deployment(site, ECHO)
    assert cli("run", "--", prompt) == Done(0, f"{len(prompt)} {prompt!a}\n", "")


@pytest.mark.parametrize("prompt", ["\ud800", "a\ud83db"])
def test_lone_surrogates_are_a_prompt_too(site: FakeSite, cli: Cli, prompt: str) -> None:
    """What no provider can be sent is replaced, and that is told; the turn is answered."""
    deployment(site, ECHO)
    done = cli("run", "--", prompt)
    sent = re.sub("[\ud800-\udfff]", "\ufffd", prompt)
    assert (done.code, done.out) == (0, f"{len(prompt)} {sent!a}\n")
    assert done.err.startswith("degraded (prompt): ")


@pytest.mark.parametrize("options", [(), ("--json",), ("--trace",), ("--json", "--trace")])
def test_any_text_can_be_shown(site: FakeSite, cli: Cli, options: tuple[str, ...]) -> None:
    """An answer and a tool result with control characters and lone surrogates are printed in every form."""
    nasty = "'\\x00\\x07\\ud800 ok'"
    site.plugin("nasty", f'''
    def build(ctx):
        def nasty(x: str) -> str:
            "Nasty."
            return {nasty}
        return [nasty]
    @hookimpl
    def symfonic_tools(context):
        return [Tools("all", build)]
    ''')  # fmt: skip
    deployment(site, f"call_tool('nasty', x={nasty})", nasty, blocks='[[plugin]]\nid = "nasty"\n')
    done = cli("run", "hi", *options)
    assert (done.code, done.err) == (0, "")
    assert "ok" in done.out
    if "--json" in options:
        assert done.json["text"].endswith(" ok")


def test_a_prompt_may_come_from_standard_input(site: FakeSite, cli: Cli) -> None:
    """``-`` reads it, 1 MB of it too, and bytes that are no UTF-8 are replaced, not refused."""
    deployment(site, ECHO)
    assert cli("run", "-", stdin=b"x" * 1_000_000) == Done(0, f"1000000 {'x' * 20!a}\n", "")
    assert cli("run", "-", stdin="ñ\n".encode()) == Done(0, f"2 {'ñ' + chr(10)!a}\n", "")
    assert cli("run", "-", stdin=b"\xff") == Done(0, f"1 {chr(0xFFFD)!a}\n", "")
    assert cli("run", "-") == Done(0, "0 ''\n", "")


# -- options ----------------------------------------------------------------------------------------------------------


def test_tool_choice_forces_a_tool(site: FakeSite, cli: Cli) -> None:
    """The model is bound with the choice."""
    deployment(site, "lambda call: call_tool('add', x=1) if call.tool_choice == 'add' else 'free'")
    done = cli("run", "hi", "--tool-choice", "add", "--json")
    assert (done.code, done.json["text"]) == (0, "free")
    assert done.json["rounds"] == 2


def test_an_unknown_tool_choice_is_told_with_the_valid_ones(site: FakeSite, cli: Cli) -> None:
    """A tool choice the plan does not have is a mistake of usage, told before a turn."""
    deployment(site)
    done = cli("run", "hi", "--tool-choice", "ad")
    assert (done.code, done.out) == (2, "")
    assert "'ad'" in done.err
    assert "add" in done.err.replace("'ad'", "")


def test_allow_is_a_ceiling(site: FakeSite, cli: Cli) -> None:
    """Only the tools it names are offered."""
    deployment(site, "lambda call: ','.join(call.tools)")
    assert cli("run", "hi", "--allow", "fail", "--allow", "add").out == "add,fail\n"
    assert cli("run", "hi").out == "add,fail,outside\n"


def test_an_unknown_allowed_tool_is_refused(site: FakeSite, cli: Cli) -> None:
    """A misspelt ceiling names the nearest tool, and no turn is run."""
    deployment(site)
    done = cli("run", "hi", "--allow", "add", "--allow", "fial")
    assert (done.code, done.out) == (2, "")
    assert "the plan has no tool 'fial'; did you mean 'fail'?" in done.err


def test_the_tenant_reaches_stages(site: FakeSite, cli: Cli) -> None:
    """``--tenant`` is the request's."""
    site.plugin("look", stage("pre-model", "print('tenant', context.request.tenant)"))
    deployment(site, "'x'", blocks='[[plugin]]\nid = "look"\n')
    assert cli("run", "hi", "--tenant", "acme").out == "tenant acme\nx\n"


# -- --json -----------------------------------------------------------------------------------------------------------


def test_json_is_the_whole_result(site: FakeSite, cli: Cli) -> None:
    """One JSON document: text, stop reason, messages; events with ``--trace``."""
    deployment(site, ADD, "'five: ñ'")
    done = cli("run", "hi", "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["text"], done.json["stop_reason"], done.json["rounds"]) == ("five: ñ", "completed", 2)
    assert "events" not in done.json
    assert "ñ" in done.out
    traced = cli("run", "hi", "--json", "--trace").json["events"]
    assert traced[0]["name"] == "symfonic.turn.started"
    assert traced[-1]["name"] == "symfonic.turn.finished"
    assert [event["symfonic.seq"] for event in traced] == list(range(1, len(traced) + 1))


def test_json_of_a_failed_turn_is_one_document_that_says_so(site: FakeSite, cli: Cli) -> None:
    """A script reads one JSON document whatever happened, and finds the fault in it."""
    deployment(site, ADD, "RuntimeError('no more')")
    done = cli("run", "hi", "--json")
    assert done.code == 1
    assert done.json["error"]["exit_code"] == 1
    assert done.json["error"]["type"] == "TurnFailed"
    assert "5" in json.dumps(done.json["error"]["result"])
    assert "error:" in done.err


@pytest.mark.parametrize("text", ["[modle]\n", "[model\n", None])
def test_json_of_a_configuration_error_is_a_document_too(site: FakeSite, cli: Cli, text: str | None) -> None:
    """The problems are listed, on standard output, with the exit code; words go to standard error."""
    if text is not None:
        site.deployment(text)
    done = cli("run", "hi", "--json")
    assert done.code == 2
    assert (done.json["error"]["type"], done.json["error"]["exit_code"]) == ("ConfigError", 2)
    assert len(done.json["error"]["problems"]) == 1
    assert done.err.startswith("error: ")


def test_json_of_broken_plugins_lists_every_problem(site: FakeSite, cli: Cli) -> None:
    """Each broken plugin is a problem of its own."""
    deployment(site, blocks='[[plugin]]\nid = "gone"\n[[plugin]]\nid = "away"\n')
    done = cli("run", "hi", "--json")
    assert done.code == 3
    assert done.json["error"]["type"] == "PluginsRefused"
    assert [re.findall("'(.*?)'", problem)[0] for problem in done.json["error"]["problems"]] == ["gone", "away"]


# -- --trace ----------------------------------------------------------------------------------------------------------


def test_the_trace_tells_the_whole_turn(site: FakeSite, cli: Cli) -> None:
    """Phases, stages with plugin and time, offered tools and why, calls with arguments and results, cost."""
    resolver = """
    def build(ctx):
        async def resolve(context):
            return Resolution(frozenset({"add"}), why={"add": ("the word plus",)})
        return resolve
    @hookimpl
    def symfonic_stages(context):
        return [StageHandler("pick", build, phase="resolve", effects=("tools.narrow",), resolves="tools")]
    """
    site.plugin("route", resolver)
    site.plugin("look", stage("post-tool", "pass"))
    deployment(
        site, ADD, "'five'", blocks='[[plugin]]\nid = "route"\ngrants = ["tools.narrow"]\n[[plugin]]\nid = "look"\n'
    )
    done = cli("run", "hi", "--trace")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "five"
    for wanted in (
        r"turn [0-9a-f]{8}$",
        r"resolve$",
        r"route\.pick .*plugin route \(dist-route 1\.0\).* ms .*ok",
        r"round 1$",
        r"offered 1 of 3 tools, [\d,]+ schema tokens, [\d,]+ saved$",
        r"add .*the word plus$",
        r"model .*called add",
        r"call add\(x=2, y=3\)$",
        r"look\.log .*plugin look \(dist-look 1\.0\)",
        r"success .*5$",
        r"round 2$",
        r"answered 4 characters",
        r"completed after 2 rounds",
    ):
        assert [line for line in lines if re.search(wanted, line)], wanted
    assert "\x1b" not in done.out


def test_the_trace_of_a_turn_where_all_goes_wrong(site: FakeSite, cli: Cli) -> None:
    """A declined resolver, a refused call, a call that was not offered, a reported crash, a limit: each stands in the tree."""
    resolver = """
    def build(ctx):
        async def resolve(context):
            return Resolution(declined="no word matched", would_offer=("add",), degraded=True)
        return resolve
    def guard(ctx):
        async def refuse(context):
            return Refuse("above the limit")
        return refuse
    def crash(ctx):
        async def look(context):
            raise OSError("no disk")
        return look
    @hookimpl
    def symfonic_stages(context):
        return [StageHandler("pick", build, phase="resolve", effects=("tools.narrow",), resolves="tools"),
                StageHandler("guard", guard, phase="pre-tool", effects=("tool_call.refuse",)),
                StageHandler("look", crash, phase="pre-model", on_crash="report")]
    """
    site.plugin("all", resolver)
    calls = "call_tools(('add', {'x': 1}), ('nope', {}))"
    deployment(
        site,
        calls,
        more="[limits]\nrounds = 1\n",
        blocks='[[plugin]]\nid = "all"\ngrants = ["tools.narrow", "tool_call.refuse"]\n',
    )
    done = cli("run", "hi", "--trace")
    assert done.code == 4
    for wanted in (
        "no word matched",
        "would offer 1: add",
        "above the limit",
        "not offered",
        "FAILED",
        "no disk",
        "degraded (",
        "call add(x=1)",
        "call nope()",
        "round_limit after 1 round,",
    ):
        assert wanted in done.out, wanted


def test_the_trace_of_a_failed_turn_is_shown_before_the_error(site: FakeSite, cli: Cli) -> None:
    """What led to the fault is seen, the culprit named on standard error."""
    site.plugin("look", stage("post-model", "raise OSError('no disk')"))
    deployment(site, "'x'", blocks='[[plugin]]\nid = "look"\n')
    done = cli("run", "hi", "--trace")
    assert done.code == 1
    assert "look.log" in done.out
    assert re.search(r"failed after 1 round, .* ms: ", done.out)
    assert "stage look.log comes from plugin look (dist-look 1.0)" in done.err


def test_a_long_trace_stays_readable(site: FakeSite, cli: Cli) -> None:
    """Many tools and long results are cut, and that is said."""
    many = """
    def build(ctx):
        def tool(n):
            async def run() -> str:
                "A tool."
                return "y" * 5000
            run.__name__ = f"tool{n:02}"
            return run
        return [tool(n) for n in range(20)]
    @hookimpl
    def symfonic_tools(context):
        return [Tools("all", build)]
    """
    site.plugin("many", many)
    deployment(site, "call_tool('tool03')", "'done'", tools=False, blocks='[[plugin]]\nid = "many"\n')
    done = cli("run", "hi", "--trace")
    assert "and 8 more" in done.out
    assert "tool11" in done.out
    assert "tool12" not in done.out
    assert "... (5,000 characters)" in done.out
    assert "y" * 301 not in done.out.replace("\n", "")


# -- exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        ("rounds = 1", [ADD]),
        ("tool_calls = 1", ["call_tools(('add', {'x': 1}), ('add', {'x': 2}))"]),
        ("tools = 2", ["'x'"]),
    ],
)
def test_a_limit_is_exit_code_4_and_says_which(site: FakeSite, cli: Cli, limits: str, steps: list[str]) -> None:
    """The reason is printed, in words."""
    deployment(site, *steps, more=f"[limits]\n{limits}\n")
    done = cli("run", "hi")
    assert done.code == 4
    assert re.search(r"\((round|tool_call|tool)_limit: ", done.out + done.err)


def test_a_model_that_raises_is_exit_code_1_with_its_cause(site: FakeSite, cli: Cli) -> None:
    """The person at the terminal is told what the provider said."""
    deployment(site, "RuntimeError('wrong key')")
    done = cli("run", "hi")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert "caused by RuntimeError: wrong key" in done.err


def test_a_model_that_hangs_is_ended_by_its_time_limit(site: FakeSite, cli: Cli) -> None:
    """Exit code 1 with the limit's name."""
    hang = "lambda call: __import__('asyncio').Event().wait()"
    deployment(site, hang, more="[limits]\nmodel_timeout_s = 0.05\n")
    done = cli("run", "hi")
    assert done.code == 1
    assert "0.05 s" in done.err


@pytest.mark.parametrize("phase", ["prompt-assembly", "pre-model", "post-model", "pre-tool", "post-tool", "settle"])
def test_d2_a_handler_that_breaks_is_exit_code_1_and_names_its_plugin(site: FakeSite, cli: Cli, phase: str) -> None:
    """Plugin, distribution, stage and phase, without a traceback."""
    site.plugin("look", stage(phase, "raise OSError('no disk')"))
    deployment(site, ADD, "'x'", blocks='[[plugin]]\nid = "look"\n')
    done = cli("run", "hi")
    assert done.code == 1
    assert f"phase {phase} crashed" in done.err
    assert "stage look.log comes from plugin look (dist-look 1.0)" in done.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, "symfonic.toml does not exist; go to the deployment's folder, or name its file with --config"),
        ("[model\n", "symfonic.toml: is not valid TOML: "),
        ("[modle]\n", "symfonic.toml: modle: unknown key; did you mean 'model'?"),
        ("schema = 2\n", "symfonic.toml: schema: is 2, wanted 1; write schema = 1"),
        ("", "[model] is missing"),
        (
            '[model]\nuse = "nowhere_models:X"\n',
            "there is no module 'nowhere_models'; install the package that brings it",
        ),
        ('[model]\nuse = "symfonic.testing:ScriptedModl"\n', "did you mean 'ScriptedModel'?"),
        (
            '[model]\nuse = "symfonic.testing:ScriptedModel"\noptions = {repeat = "sk-secret"}\n',
            "model.options: ScriptedModel: repeat: ",
        ),
        ('[model]\nuse = "symfonic.testing:ScriptedModel"\n[limits]\nrounds = 0\n', "limit rounds is 0"),
        ('[model]\nuse = "symfonic.testing:ScriptedModel"\n[limits]\nturn_s = nan\n', "limit turn_s is nan"),
    ],
)
def test_configuration_mistakes_are_exit_code_2(site: FakeSite, cli: Cli, text: str | None, wanted: str) -> None:
    """Each is told in words with the way out, and no value of an option."""
    if text is not None:
        site.deployment(text)
    done = cli("run", "hi")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert wanted in done.err
    assert "sk-secret" not in done.err


@pytest.mark.parametrize(
    "args", [("run",), ("run", "a", "b"), ("run", "a", "--nope"), ("nope",), ("run", "a", "--config")]
)
def test_usage_mistakes_are_exit_code_2(cli: Cli, args: tuple[str, ...]) -> None:
    """click's words, with the usage line."""
    done = cli(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(("Usage: symfonic-kernel", "error: "))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("raise RuntimeError('boom')", "import-failed: importing fake_bad raised RuntimeError: boom"),
        ("import sys; sys.exit(7)", "import-failed: importing fake_bad raised SystemExit: 7"),
        (
            "@hookimpl\ndef symfonic_tools(context): raise OSError('x')",
            "invalid-hooks: symfonic_tools raised OSError: x",
        ),
        ("@hookimpl\ndef symfonic_tool(context): pass", "invalid-hooks: symfonic_tool is no hook"),
        (
            "@hookimpl\ndef symfonic_tools(context): return [Tools('t', lambda c: 1 / 0)]",
            "failed: the factory of tools 't' raised ZeroDivisionError",
        ),
    ],
)
def test_broken_plugins_are_exit_code_3(site: FakeSite, cli: Cli, source: str, wanted: str) -> None:
    """Broken at import, in a hook, in a factory: plugin and distribution are named."""
    site.plugin("bad", source)
    deployment(site, blocks='[[plugin]]\nid = "bad"\n')
    done = cli("run", "hi")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: plugin 'bad' (dist-bad 1.0), {wanted}")


def test_an_unknown_plugin_is_exit_code_3(site: FakeSite, cli: Cli) -> None:
    """The nearest installed one is offered."""
    deployment(site, blocks='[[plugin]]\nid = "kitt"\n')
    done = cli("run", "hi")
    assert done.code == 3
    assert "did you mean 'kit'?" in done.err


def test_degraded_starts_and_says_whom_it_left_out(site: FakeSite) -> None:
    """In a process of its own, as a person sees it: a warning, then the answer."""
    site.plugin("bad", "raise RuntimeError('boom')")
    deployment(site, "'x'", more='policy = "degraded"', blocks='[[plugin]]\nid = "bad"\n')
    done = site.cli("run", "hi")
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert b"left out by policy degraded: plugin 'bad'" in done.stderr


def test_degradations_are_told_once_on_standard_error(site: FakeSite) -> None:
    """The answer stays clean on standard output; the logging sink does not tell them a second time."""
    site.plugin(
        "look", stage("pre-model", "raise OSError('no disk')").replace("summary=", "on_crash='report', summary=")
    )
    deployment(site, "'x'", blocks='[[plugin]]\nid = "look"\n')
    done = site.cli("run", "hi")
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert done.stderr.count(b"degraded (") == 1
    assert b"look.log" in done.stderr


# -- as a process -----------------------------------------------------------------------------------------------------


def test_utf_8_whatever_the_locale_says(site: FakeSite) -> None:
    """Under LC_ALL=C and PYTHONIOENCODING=ascii prompts and answers of any script come through."""
    deployment(site, "lambda call: call.messages[-1].content + ' → はい'")
    for env in (
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C.UTF-8"},
        {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    ):
        done = site.cli("run", "-", stdin="¿qué?".encode(), env=env)
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, "¿qué? → はい\n", b""), env


def test_a_prompt_argument_that_is_no_utf_8(site: FakeSite) -> None:
    """Bytes of another encoding on the command line are a prompt with lone surrogates, and no crash."""
    deployment(site, ECHO)
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-c", b"from symfonic.host.cli import main; main()", b"run", b"caf\xe9"],
        capture_output=True,
        check=False,
        cwd=site.root,
        env=site.environment(),
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"4 'caf\\ufffd'\n")
    assert done.stderr.startswith(b"degraded (prompt): ")
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_has_gone_is_no_fault(site: FakeSite) -> None:
    """``| head``: what nobody reads is dropped, without a traceback and without a failure."""
    deployment(site, "' '.join(['word'] * 50_000)")
    for args in ("run hi", "run hi --json", "run hi --trace", "hooks", "plan", "plugins list"):
        code = f"import sys; sys.argv[1:] = {args.split()!r}; from symfonic.host.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=site.root,
            env=site.environment(),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        assert (process.wait(60), errors) == (0, b""), args


HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A process started by a shell's background job ignores SIGINT; the tests' own hear it whoever started them."""

HANGS = {
    "model": ("hang", ""),
    "tool": (
        "call_tool('stuck')",
        """
        def build(ctx):
            def stuck() -> str:
                "Blocks its thread for ever."
                import threading
                print("asked", flush=True)
                threading.Event().wait()
            return [stuck]
        @hookimpl
        def symfonic_tools(context):
            return [Tools("all", build)]
        """,
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to another process there")
@pytest.mark.parametrize("what", sorted(HANGS))
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_is_exit_code_130(site: FakeSite, what: str, options: tuple[str, ...]) -> None:
    """A hanging model, or a tool that blocks its thread for ever, is interrupted without a traceback."""
    step, source = HANGS[what]
    site.plugin("tool", source or stage("settle", "print('settled', flush=True)"))
    deployment(site, step, tools=False, blocks='[[plugin]]\nid = "tool"\n')
    module = site.root / "fake_said.py"
    module.write_text(
        module.read_text()
        + "\nasync def hang(call):\n    import asyncio\n    print('asked', flush=True)\n    await asyncio.Event().wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", HEARS + "from symfonic.host.cli import main; main()", "run", "hi", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=site.root,
        env=site.environment(),
    ) as process:
        try:
            printed = process.stderr if options else process.stdout  # with --json plugins' prints go to standard error
            assert printed is not None
            assert printed.readline() == b"asked\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"interrupted; the turn was given up" in err
    if what == "model":
        assert b"settled" in (err if options else out)


def test_a_path_given_from_elsewhere(site: FakeSite, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--config`` and SYMFONIC_CONFIG name a file anywhere."""
    file = deployment(site, "'x'")
    monkeypatch.chdir(tmp_path)
    assert cli("run", "hi").code == 2
    assert cli("run", "hi", "--config", str(file)) == Done(0, "x\n", "")
    monkeypatch.setenv("SYMFONIC_CONFIG", str(file))
    assert cli("run", "hi") == Done(0, "x\n", "")
    assert cli("run", "hi", "--config", "other.toml").code == 2

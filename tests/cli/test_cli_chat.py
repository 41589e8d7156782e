"""``symfonic-kernel chat``."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict
from tests.cli.conftest import Cli, Done
from tests.cli.support import deployment, stage
from tests.host.support import FakeSite, model_source

from symfonic.host.cli._conversation import Conversation, load_conversation, save_conversation
from symfonic.host.cli._interrupts import Interrupts
from symfonic.host.cli._lines import Lines, standard_input, typed
from symfonic.host.cli._slash import COMMANDS
from symfonic.host.files import write_whole
from symfonic.kernel.errors import DocumentError
from symfonic.kernel.turn import TurnResult

HEARD = "lambda call: ' | '.join(f'{m.type} {m.text}' for m in call.messages)"
"""A model that says what it was sent."""


def lines(*said: str) -> bytes:
    """Standard input."""
    return "".join(f"{line}\n" for line in said).encode()


# -- turns ------------------------------------------------------------------------------------------------------------


def test_each_line_is_a_turn_with_the_history_before_it(site: FakeSite, cli: Cli) -> None:
    """Piped lines are answered one after the other; no prompt is printed, blank lines are none, the end is exit code 0."""
    deployment(site, "'one'", HEARD)
    assert cli("chat", stdin=lines("¿sí?", "", "   ", "and?")) == Done(0, "one\nhuman ¿sí? | ai one | human and?\n", "")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_last_line_needs_no_end(site: FakeSite, cli: Cli, end: bytes) -> None:
    """What stands before the end of the input is a turn; a carriage return is part of the line's end."""
    deployment(site, HEARD)
    assert cli("chat", stdin=b"hi" + end) == Done(0, "human hi\n", "")


def test_bytes_that_are_no_utf_8_are_replaced(site: FakeSite, cli: Cli) -> None:
    """Whatever is piped in is a turn."""
    deployment(site, HEARD)
    assert cli("chat", stdin=b"\xff\n") == Done(0, "human \ufffd\n", "")


def test_no_input_at_all_is_the_end(site: FakeSite, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing piped in, or a process without standard input: nothing is answered, exit code 0."""
    deployment(site)
    assert cli("chat") == Done(0, "", "")
    done = site.run("-c", "import sys; sys.stdin = None; from symfonic.host.cli import main; main(['chat'])")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_open_history_of_tools_is_kept(site: FakeSite, cli: Cli) -> None:
    """Calls and their results are part of the conversation."""
    deployment(site, "call_tool('add', x=2, y=3)", "'five'", HEARD)
    done = cli("chat", stdin=lines("sum", "more"))
    assert done == Done(0, "five\nhuman sum | ai  | tool 5 | ai five | human more\n", "")


def test_a_failed_turn_is_told_and_the_conversation_goes_on(site: FakeSite, cli: Cli) -> None:
    """The failed turn's valid messages are the history, the cause is told, the piped session ends with 1."""
    deployment(site, "'one'", "call_tool('add', x=1)", "OSError('refused')", HEARD)
    done = cli("chat", stdin=lines("a", "b", "c"))
    assert (done.code, done.out) == (1, "one\nhuman a | ai one | human b | ai  | tool 1 | human c\n")
    assert "caused by OSError: refused" in done.err
    assert "(failed; the conversation goes on with the 5 messages so far)" in done.err


def test_a_turn_that_never_took_the_history_in_leaves_it_as_it_was(
    site: FakeSite, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that fails at once does not forget the conversation."""
    deployment(site, "'one'", HEARD)
    taken = []

    from symfonic.kernel import _loop

    original = _loop.repaired

    def once_broken(history: object) -> object:
        taken.append(history)
        if len(taken) == 2:
            raise ValueError("on purpose")
        return original(history)  # type: ignore[arg-type]

    monkeypatch.setattr(_loop, "repaired", once_broken)
    done = cli("chat", stdin=lines("a", "b", "c"))
    assert done.out == "one\nhuman a | ai one | human c\n"
    assert "the 2 messages so far" in done.err


def test_what_was_given_up_and_what_ended_a_turn_early_is_told(site: FakeSite, cli: Cli) -> None:
    """Degradations and limits stand on standard error, deferred calls where the answer would."""
    site.plugin("log", stage("settle", "raise OSError('x')").replace("phase=", "on_crash='report', phase="))
    deployment(site, "call_tool('outside')", blocks='[[plugin]]\nid = "log"\n')
    done = cli("chat", stdin=lines("a"))
    assert done.out.startswith("(deferred: ")
    assert "degraded (stage): " in done.err


def test_tenant_and_conversation_id_reach_every_event(site: FakeSite, cli: Cli) -> None:
    """The id that was given, else one of the session's own, stands in each event of each turn; the tenant in the request."""
    site.plugin("log", stage("settle", "print('for', context.request.tenant)"))
    deployment(site, "'x'", blocks='[[plugin]]\nid = "log"\n')
    done = cli(
        "chat", "--tenant", "acme", "--conversation-id", "k", "--json", stdin=lines("a", "/trace", "b", "/trace")
    )
    printed = done.out.splitlines()
    assert printed.count("for acme") == 2
    rows = [json.loads(line) for line in printed if line != "for acme"]
    assert [row["conversation_id"] for row in rows[::2]] == ["k", "k"]
    assert {event["gen_ai.conversation.id"] for row in rows[1::2] for event in row["events"]} == {"k"}
    own = [
        json.loads(line)
        for line in cli("chat", "--json", stdin=lines("a", "b", "/new", "c")).out.splitlines()
        if line[0] == "{"
    ]
    ids = [row["conversation_id"] for row in own]
    assert ids[0]
    assert ids[0] == ids[1] != ids[2]


def test_json_is_a_result_a_line(site: FakeSite, cli: Cli) -> None:
    """With --json each turn's result is one line that reads back; a failed one's is in its error."""
    deployment(site, "'one'", "OSError()")
    done = cli("chat", "--json", stdin=lines("a", "b"))
    first, second = map(json.loads, done.out.splitlines())
    assert TurnResult.from_json(first).text == "one"
    assert second["error"]["type"] == "TurnFailed"
    assert TurnResult.from_json(second["error"]["result"]).stop_reason == "failed"


def test_a_deployment_that_cannot_start_ends_as_everywhere(site: FakeSite, cli: Cli) -> None:
    """Its exit code and its words, before a line is read."""
    done = cli("chat", stdin=lines("a"))
    assert (done.code, done.out) == (2, "")
    assert "symfonic.toml does not exist" in done.err


def test_a_reader_that_has_gone_ends_the_session(site: FakeSite) -> None:
    """``| head`` is no failure, as everywhere."""
    deployment(site, "'x'")
    process = subprocess.Popen(
        [sys.executable, "-c", "from symfonic.host.cli import main; main()", "chat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=site.root, env=site.environment(),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(lines("a", "b"), timeout=60)
    assert (process.returncode, errors) == (0, b"")


# -- slash commands ---------------------------------------------------------------------------------------------------


def test_an_unknown_command_is_told_with_the_nearest(site: FakeSite, cli: Cli) -> None:
    """It is no turn; a text that starts with a blank is one."""
    deployment(site, HEARD)
    done = cli("chat", stdin=lines("/tols", "/", " /tols"))
    assert done.out == "human  /tols\n"
    assert "there is no command /tols; did you mean '/tools'?" in done.err
    assert done.err.count("there is no command /") == 2


def test_help_lists_every_command(site: FakeSite, cli: Cli) -> None:
    """With what each does."""
    deployment(site)
    done = cli("chat", stdin=lines("/help"))
    for name, command in COMMANDS.items():
        assert f"/{name} {command.argument}".strip() in done.err
        assert command.summary in done.err


def test_quit_ends(site: FakeSite, cli: Cli) -> None:
    """With exit code 0, whatever comes after it."""
    deployment(site)
    assert cli("chat", stdin=lines("/quit", "hi")) == Done(0, "", "")


def test_trace_shows_the_last_turn(site: FakeSite, cli: Cli) -> None:
    """The tree ``run --trace`` shows; before a turn there is none."""
    deployment(site, "call_tool('add', x=1)", "'done'")
    done = cli("chat", stdin=lines("/trace", "hi", "/trace", "/new", "/trace"))
    assert "call add(x=1)" in done.out
    assert done.out.count("\nturn ") == 1
    assert done.err.count("there was no turn yet\n") == 2


ROUTER = """
def build(ctx):
    async def handle(context):
        from symfonic.kernel.effects import Resolution
        return Resolution(frozenset({"add"}), why={"add": ("sum", "plus")})
    return handle

@hookimpl
def symfonic_stages(context):
    return [StageHandler("pick", build, phase="resolve", effects=("tools.narrow",), resolves="tools")]
"""


def test_tools_marks_what_was_offered_with_the_reasons(site: FakeSite, cli: Cli) -> None:
    """All tools of the plan; those of the last turn with a mark and why, as a table and as JSON."""
    site.plugin("pick", ROUTER)
    deployment(site, "'x'", blocks='[[plugin]]\nid = "pick"\ngrants = ["tools.narrow"]\n')
    before, *_ = cli("chat", stdin=lines("/tools")).out.split("\n\n")
    assert "*" not in before
    assert [name in before for name in ("add", "fail", "outside", "here", "plugin kit")] == [True] * 5
    after = cli("chat", stdin=lines("hi", "/tools")).out
    (marked,) = [line for line in after.splitlines() if line.startswith("*  ")]
    assert marked.split()[1] == "add"
    assert marked.rstrip().endswith("sum; plus")
    assert "* offered in the last turn" in after
    rows = [json.loads(line) for line in cli("chat", "--json", stdin=lines("/tools", "hi", "/tools")).out.splitlines()]
    assert [row["offered"] for row in rows[0]["tools"]] == [None, None, None]
    assert [(row["name"], row["offered"], row["why"]) for row in rows[2]["tools"]] == [
        ("add", True, ["sum", "plus"]),
        ("fail", False, []),
        ("outside", False, []),
    ]


def test_tools_of_a_plan_without_tools(site: FakeSite, cli: Cli) -> None:
    """Said in words."""
    deployment(site, tools=False)
    assert cli("chat", stdin=lines("/tools")).out == "the plan has no tools\n"


# -- files ------------------------------------------------------------------------------------------------------------


def test_save_and_load_go_on_with_the_conversation(site: FakeSite, cli: Cli, tmp_path: Path) -> None:
    """The documented format, in the current folder; loading takes its id; ``--load`` does it at start."""
    deployment(site, "'öne'", HEARD)
    done = cli("chat", "--conversation-id", "k", stdin=lines("a", "/save talk one.json"))
    assert done.err == "saved 2 messages to talk one.json\n"
    text = (site.root / "talk one.json").read_text(encoding="utf-8")
    kept = json.loads(text)
    assert list(kept) == ["schema", "conversation_id", "messages"]
    assert (kept["schema"], kept["conversation_id"]) == (1, "k")
    assert messages_from_dict(kept["messages"]) == list(load_conversation(site.root / "talk one.json").messages)
    assert "öne" in text
    (site.root / "fake_said.py").write_text("from symfonic.plugin import *\n" + model_source(HEARD))
    sys.modules.pop("fake_said")
    wanted = "human a | ai öne | human b\n"
    done = cli("chat", stdin=lines("/load talk one.json", "b", "/trace"))
    assert done.out.startswith(wanted)
    assert done.err == "loaded 2 messages from talk one.json\n"
    assert cli("chat", "--load", "talk one.json", stdin=lines("b")) == Done(0, wanted, "")
    for options, told in (((), "k"), (("--conversation-id", "other"), "other")):
        done = cli("chat", "--load", "talk one.json", "--json", *options, stdin=lines("b"))
        assert done.json["conversation_id"] == told


BAD = {
    "": "is no JSON: ",
    "{": "is no JSON: ",
    "[" * 100_000: "is no JSON: ",
    "[]": "the document: is a list, wanted a table",
    "{}": "schema: missing",
    '{"schema": 2, "conversation_id": null, "messages": []}': "schema: this version reads schema 1",
    '{"schema": "1"}': "schema: is a text, wanted a whole number",
    '{"schema": 1, "messages": []}': "conversation_id: missing",
    '{"schema": 1, "conversation_id": 5, "messages": []}': "conversation_id: is a whole number, wanted a text",
    '{"schema": 1, "conversation_id": null}': "messages: missing",
    '{"schema": 1, "conversation_id": null, "messages": [{"type": "x", "data": {}}]}': "messages[0]: LangChain makes no",
    '{"schema": 1, "conversation_id": null, "messages": [{"type": "human"}]}': "messages[0].data: missing",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_file_that_is_no_conversation_is_told_and_leaves_it_as_it_was(site: FakeSite, cli: Cli, text: str) -> None:
    """The key is named, and the next turn has the history it would have had; at start it is exit code 2."""
    deployment(site, "'one'", HEARD)
    (site.root / "bad.json").write_text(text)
    done = cli("chat", stdin=lines("a", "/load bad.json", "b"))
    assert done.out == "one\nhuman a | ai one | human b\n"
    assert done.err.startswith(f"error: bad.json: {BAD[text]}")
    done = cli("chat", "--load", "bad.json", stdin=lines("a"))
    assert (done.code, done.out) == (2, "")
    assert f"bad.json: {BAD[text]}" in done.err


def test_files_that_cannot_be_read_or_written_are_told(site: FakeSite, cli: Cli) -> None:
    """Missing, a folder, no UTF-8, no name, an unknown person's: words, and the session goes on."""
    deployment(site, "'x'")
    (site.root / "latin.json").write_bytes(b"\xff")
    (site.root / "folder").mkdir()
    said = ("/load none.json", "/load folder", "/load latin.json", "/load", "/save", "/save folder", "/save no/x.json",
            "/load a\0b", "/save a\0b", "/load ~nobody-of-that-name/x", "hi")  # fmt: skip
    done = cli("chat", stdin=lines(*said))
    assert (done.code, done.out) == (0, "x\n")
    told = done.err.splitlines()
    assert len(told) == len(said) - 1
    for line, wanted in zip(told, (
        "none.json: cannot be read: No such file", "folder: cannot be read: ", "latin.json: is not UTF-8 at byte 0",
        "/load FILE: name the file", "/save FILE: name the file", "folder: cannot be written: is a folder",
        "x.json: cannot be written: No such file", ": embedded null", "embedded null",
        "~nobody-of-that-name/x: ",
    ), strict=True):  # fmt: skip
        assert line.startswith("error: ")
        assert wanted in line.replace("no/", "").replace("no\\", "")


def test_a_conversation_of_any_text_is_kept() -> None:
    """Lone surrogates too, which have no UTF-8 of their own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        kept = Conversation("k", (HumanMessage("\ud800 \x00 😀"), AIMessage("¿?", response_metadata={"a": [1]})))
        save_conversation(path, kept)
        assert load_conversation(path) == kept


def test_a_conversation_without_an_id_is_given_one(tmp_path: Path) -> None:
    """Each time another."""
    path = tmp_path / "c.json"
    path.write_text('\ufeff{"schema": 1, "conversation_id": null, "messages": []}', encoding="utf-8")
    first, second = load_conversation(path), load_conversation(path)
    assert first.id
    assert first.id != second.id


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves the old file and nothing beside it; one that works keeps mode and link."""
    path = tmp_path / "c.json"
    path.write_text("old")
    path.chmod(0o600)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("symfonic.host.files.os.fsync", full)
        with pytest.raises(DocumentError, match="c.json: cannot be written: No space left"):
            save_conversation(path, Conversation())
    assert (path.read_text(), [one.name for one in tmp_path.iterdir()]) == ("old", ["c.json"])
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_whole(link, "new\n")
    assert link.is_symlink()
    assert path.read_bytes() == b"new\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["c.json", "link.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such file")
def test_what_is_no_plain_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe or a device stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DocumentError, match="cannot be written: is no plain file"):
        save_conversation(pipe, Conversation())
    assert pipe.is_fifo()


# -- reading ----------------------------------------------------------------------------------------------------------


@attrs.define
class Chunks:
    """A source that gives these chunks, and raises or ends after them."""

    given: list[bytes | None]
    error: Exception | None = None

    def read(self, size: int, /) -> bytes | None:
        """The next one."""
        if not self.given and self.error is not None:
            raise self.error
        return self.given.pop(0) if self.given else b""


def read_all(source: Chunks | None) -> list[str]:
    """Every line."""

    async def main() -> list[str]:
        reader, found = Lines(source), []
        while (line := await reader.next()) is not None:
            found.append(line)
        assert await reader.next() is None
        return found

    return asyncio.run(main())


def test_what_arrow_keys_send_is_no_part_of_a_typed_line() -> None:
    """Cursor, function and Alt keys, and a lone escape, are dropped; text and tabs stay."""
    assert typed("a\x1b[A\x1b[1;5Cb\x1bOP\x1b[3~\tñ\x1bx\x1b") == "ab\tñ"


def test_a_conversation_that_cannot_be_loaded_at_the_start_is_exit_code_2(site: FakeSite, cli: Cli) -> None:
    """There is no conversation then."""
    deployment(site, "'x'")
    done = cli("chat", "--load", "gone.json", stdin=lines("a"))
    assert (done.code, done.out) == (2, "")
    assert "gone.json: cannot be read" in done.err


def test_lines_are_put_together_from_chunks() -> None:
    """Wherever the chunks part, inside a character too; after an end nothing is read again."""
    assert read_all(Chunks([b"a\nb", b"c\xc3", b"\xb1\r\n", b"\n", b"d"])) == ["a", "bcñ", "", "d"]
    assert read_all(Chunks([b"a", None, b"never"])) == ["a"]
    assert read_all(None) == []


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("I/O operation on closed file")])
def test_a_terminal_that_has_gone_is_the_end(error: Exception) -> None:
    """What was read before it is a line all the same."""
    assert read_all(Chunks([b"a"], error)) == ["a"]


def test_input_that_comes_after_the_session_disturbs_nobody() -> None:
    """A reader that was cancelled, or whose loop has closed, gives what it reads to nobody."""
    gates = [threading.Event(), threading.Event()]
    began = threading.Event()

    class Slow:
        def read(self, size: int, /) -> bytes:
            began.set()
            gates[0].wait(30)
            return b"late\n"

    async def main(*, wait: bool) -> None:
        reading = asyncio.ensure_future(Lines(Slow()).next())
        await asyncio.to_thread(began.wait, 30)
        reading.cancel()
        await asyncio.wait([reading])
        if wait:
            thread = next(one for one in threading.enumerate() if one.name == "symfonic-input")
            gates[0].set()
            await asyncio.to_thread(thread.join, 30)
            await asyncio.sleep(0)
        assert reading.cancelled()

    asyncio.run(main(wait=True))
    gates[0].clear()
    began.clear()
    asyncio.run(main(wait=False))
    thread = next(one for one in threading.enumerate() if one.name == "symfonic-input")
    gates[0].set()
    thread.join(30)
    assert not thread.is_alive()


def test_standard_input_is_read_below_its_buffer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is such a layer."""
    file = tmp_path / "x"
    file.write_bytes(b"")
    with file.open(encoding="utf-8") as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert isinstance(standard_input(), io.FileIO)


# -- interrupts -------------------------------------------------------------------------------------------------------


def test_a_second_interrupt_before_the_first_was_served_is_a_keyboard_interrupt() -> None:
    """What blocks the loop can be left; SIGINT is given back afterwards."""
    before = signal.getsignal(signal.SIGINT)

    async def main() -> None:
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()

    asyncio.run(main())
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_was_taken_leaves_the_task_as_if_never_cancelled() -> None:
    """So that timeouts and task groups of later turns work; a cancellation of another is not taken."""

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        with Interrupts() as interrupts:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.Event().wait()
                assert interrupts.taken()
                assert task.cancelling() == 0
            assert not interrupts.taken()

    asyncio.run(main())


def test_no_signal_is_taken_outside_the_main_thread_or_where_it_is_ignored() -> None:
    """A background job that ignores SIGINT goes on ignoring it."""

    async def main() -> object:
        with Interrupts():
            return signal.getsignal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(asyncio.run(main())))
    thread.start()
    thread.join()
    assert seen == [before]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert asyncio.run(main()) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


HANG = """
async def hang(call):
    import asyncio
    print("asked", flush=True)
    await asyncio.Event().wait()
"""
CHAT = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "import sys{}; from symfonic.host.cli import main; main(['chat', *sys.argv[1:]])"
)
TERMINAL = ", fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
"""Makes the process's standard input its controlling terminal, so that a typed Ctrl-C is a signal."""

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to another process there")


class Terminal:
    """A person at a terminal, with a chat in it.

    Args:
        site: Where the chat runs.
        args: Its options.
    """

    def __init__(self, site: FakeSite, *args: str) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHAT.format(TERMINAL), *args],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=site.root, env=site.environment(), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def until(self, wanted: str) -> str:
        """Read until a text is shown; what was shown up to it."""
        while wanted not in self.seen:
            self._read()
        shown, _, self.seen = self.seen.partition(wanted)
        return shown

    def end(self) -> tuple[int, str]:
        """The exit code, and what was shown to the end."""
        try:
            while True:
                self._read()
        except OSError:  # the other end is closed
            code = self.process.wait(60)
        return code, self.seen

    def _read(self) -> None:
        ready, _, _ = select.select([self._ours], [], [], 60)
        assert ready, f"nothing came any more after {self.seen!r}"
        chunk = os.read(self._ours, 65536)
        if not chunk:
            raise OSError
        self.seen += chunk.decode("utf-8", "replace").replace("\r\n", "\n")

    def close(self) -> None:
        """Leave the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def talk(site: FakeSite) -> Iterator[list[Terminal]]:
    """Terminals to be closed."""
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        one.close()


def hanging(site: FakeSite, *steps: str, **fields: str) -> None:
    """A deployment whose model can hang."""
    deployment(site, *steps, **fields)  # type: ignore[arg-type]
    module = site.root / "fake_said.py"
    module.write_text(module.read_text() + HANG)


@needs_signals
def test_a_typed_ctrl_c_interrupts_the_answer_and_the_conversation_goes_on(
    site: FakeSite, talk: list[Terminal]
) -> None:
    """What was said so far is the history, settle ran, a prompt follows; Ctrl-D at it ends with 0."""
    site.plugin("log", stage("settle", "print('settled', flush=True)"))
    hanging(site, "'one'", "hang", HEARD, blocks='[[plugin]]\nid = "log"\n')
    terminal = Terminal(site)
    talk.append(terminal)
    terminal.until("> ")
    terminal.type("a\n")
    assert "one\n" in terminal.until("settled\n") + terminal.until("> ")
    terminal.type("b\n")
    terminal.until("asked\n")
    terminal.type("\x03")
    assert "settled\n" in terminal.until("(interrupted; the conversation goes on with the 3 messages so far)\n")
    terminal.until("> ")
    terminal.type("/trace\n")
    assert "round 1" in terminal.until("> ")
    terminal.type("c\n")
    terminal.until("human a | ai one | human b | human c")
    terminal.until("> ")
    terminal.type("\x04")
    code, shown = terminal.end()
    assert code == 0
    assert "Traceback" not in shown
    assert shown.endswith("\n")


@needs_signals
def test_a_typed_ctrl_c_at_the_prompt_ends_with_130(site: FakeSite, talk: list[Terminal]) -> None:
    """At once, without a word of the interpreter's, though a thread waits for input."""
    deployment(site, "'one'")
    terminal = Terminal(site)
    talk.append(terminal)
    terminal.until("> ")
    terminal.type("a\n")
    terminal.until("one\n")
    terminal.until("> ")
    terminal.type("\x03")
    code, shown = terminal.end()
    assert (code, shown.replace("^C", "")) == (130, "\n")


@needs_signals
def test_a_second_ctrl_c_ends_what_does_not_give_way(site: FakeSite, talk: list[Terminal]) -> None:
    """A settle stage that hangs keeps nobody in the session."""
    body = "import asyncio; print('stuck', flush=True); await asyncio.Event().wait()"
    site.plugin("log", stage("settle", body))
    hanging(site, "hang", blocks='[[plugin]]\nid = "log"\n')
    terminal = Terminal(site)
    talk.append(terminal)
    terminal.until("> ")
    terminal.type("a\n")
    terminal.until("asked\n")
    terminal.type("\x03")
    terminal.until("stuck\n")
    terminal.type("\x03")
    code, shown = terminal.end()
    assert code == 130
    assert "Traceback" not in shown


Piped = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def piped(site: FakeSite) -> Iterator[Piped]:
    """Starts a chat whose input is a pipe; whatever a test leaves of it is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", CHAT.format("")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=site.root, env=site.environment(),
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


@needs_signals
def test_a_tool_call_that_is_interrupted_has_its_result(site: FakeSite, piped: Piped) -> None:
    """The history stays valid: the call is answered by "not run", and the next line is a turn on it."""
    site.plugin("tool", """
    def build(ctx):
        async def stuck() -> str:
            "Waits for ever."
            import asyncio
            print("asked", flush=True)
            await asyncio.Event().wait()
        return [stuck]
    @hookimpl
    def symfonic_tools(context):
        return [Tools("all", build)]
    """)  # fmt: skip
    deployment(site, "call_tool('stuck')", HEARD, tools=False, blocks='[[plugin]]\nid = "tool"\n')
    process = piped()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines("a"))
    process.stdin.flush()
    assert process.stdout.readline() == b"asked\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(lines("b"), timeout=60)
    assert (process.returncode, out) == (0, b"human a | ai  | tool not run: the turn was cancelled | human b\n")
    assert b"(interrupted; the conversation goes on with the 3 messages so far)" in err


@needs_signals
def test_an_interrupt_while_nothing_is_asked_ends_a_piped_session(site: FakeSite, piped: Piped) -> None:
    """Exit code 130, as at a prompt, and no line of a prompt."""
    deployment(site, "'one'")
    process = piped()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines("a", "/tools"))  # the answer is out before its turn is over, the table is not
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    while process.stdout.readline() != b"* offered in the last turn\n":
        pass
    process.send_signal(signal.SIGINT)
    process.wait(60)  # with its input still open
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


@needs_signals
def test_an_interrupt_while_the_host_starts_ends_with_130(site: FakeSite, piped: Piped) -> None:
    """A plugin whose factory hangs can be left."""
    source = model_source().replace("def build(ctx):", "async def build(ctx):\n    await hang(ctx)") + HANG
    site.plugin("said", source)
    site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n')
    process = piped()
    assert process.stdout is not None
    assert process.stdout.readline() == b"asked\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


@needs_signals
def test_waiting_for_a_line_keeps_nothing_on_the_loop_waiting(site: FakeSite, piped: Piped) -> None:
    """What a plugin left to do in the background is done while nobody types."""
    body = "import asyncio; asyncio.get_running_loop().call_later(0.01, lambda: print('later', flush=True))"
    site.plugin("log", stage("settle", body))
    deployment(site, "'one'", blocks='[[plugin]]\nid = "log"\n')
    process = piped()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines("a"))
    process.stdin.flush()
    assert [process.stdout.readline(), process.stdout.readline()] == [b"one\n", b"later\n"]
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0


INTERRUPT = """
async def interrupt(call):
    import asyncio, os, signal
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()
"""


class Typed(io.BytesIO):
    """A terminal at which these lines are typed, then Ctrl-C or, without it, Ctrl-D."""

    ctrl_c = False

    def read(self, size: int | None = -1, /) -> bytes:
        """The next line."""
        line = self.readline()
        if not line and self.ctrl_c:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
        return line

    def isatty(self) -> bool:
        """It is one."""
        return True


@needs_signals
@pytest.mark.parametrize(("ctrl_c", "code"), [(False, 0), (True, 130)])
def test_a_session_at_a_terminal(
    site: FakeSite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ctrl_c: bool, code: int
) -> None:
    """Prompts and notes stand on standard error, answers alone on standard output; an interrupt is told on a fresh line."""
    from symfonic.host.cli import main

    deployment(site, "'one'", "interrupt", HEARD)
    module = site.root / "fake_said.py"
    module.write_text(module.read_text() + INTERRUPT)
    typed = Typed(lines("a", "b", "c"))
    monkeypatch.setattr(typed, "ctrl_c", ctrl_c)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed))
    with pytest.raises(SystemExit) as ended:
        main(["chat"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (code, "one\nhuman a | ai one | human b | human c\n")
    assert err.splitlines() == [
        "/help lists the commands, Ctrl-D ends.",
        "> > ",
        "(interrupted; the conversation goes on with the 3 messages so far)",
        "> > ",
    ]


def test_a_cancellation_of_another_is_not_taken_for_ctrl_c(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cancels the session's task ends it, at the prompt and in a turn."""
    from symfonic.host.cli import _chat

    hanging(site, "hang")

    async def main(held: bytes) -> None:
        began = asyncio.Event()

        class Waits(Lines):
            async def next(self) -> str | None:
                began.set()
                if held and self._held is not None:
                    self._held = None  # type: ignore[assignment]
                    return "hi"
                await asyncio.Event().wait()
                return None

        monkeypatch.setattr(_chat, "Lines", Waits)
        session = asyncio.ensure_future(_chat._chat(None, Conversation(), None, as_json=False))
        await began.wait()
        await asyncio.sleep(0.05 if held else 0)
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    asyncio.run(main(b""))
    asyncio.run(main(b"hi"))

"""The how-to about conversations holds: its Python runs, its file can be loaded."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.docs_support import ROOT, blocks, marked

from symfonic.host import compose
from symfonic.host.cli._conversation import load_conversation
from symfonic.kernel.turn import TurnResult
from symfonic.testing import ScriptedModel, call_tool

PAGE = "docs/howto-conversations.md"


def example(mark: str) -> dict[str, Any]:
    """What an example defines."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(marked(PAGE, mark), mark, "exec"), names)
    return names


def test_the_sqlite_example_runs_as_it_stands(tmp_path: Path) -> None:
    """Two turns of one conversation, the second with the first as its history, are kept in the database."""
    shutil.copy(ROOT / "examples" / "shop" / "symfonic.toml", tmp_path / "symfonic.toml")
    (tmp_path / "example.py").write_text(marked(PAGE, "sqlite"), encoding="utf-8")
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "shipped" in done.stdout
    database = sqlite3.connect(tmp_path / "conversations.db")
    ((turns, kept),) = database.execute("SELECT turns, result FROM conversations WHERE id = 'order-17'").fetchall()
    database.close()
    result = TurnResult.from_json(json.loads(kept))
    assert turns == 2
    assert [m.text for m in result.messages if m.type == "human"] == ["Where is order A-1042?", "And where is A-1040?"]
    assert result.conversation_id == "order-17"


def test_a_turn_that_was_overtaken_writes_over_nothing(tmp_path: Path) -> None:
    """Of two turns at the same time on one conversation the second to end is refused, at its start too."""
    conversations = example("sqlite")["Conversations"](str(tmp_path / "c.db"))
    for turns in (0, 1):
        conversations.put("k", turns, TurnResult(text=f"first {turns}"))
        with pytest.raises(RuntimeError, match="conversation k has gone on meanwhile"):
            conversations.put("k", turns, TurnResult(text="second"))
    assert conversations.get("k")[1].text == "first 1"
    conversations.close()


def test_the_deferred_example_goes_on_from_what_was_kept() -> None:
    """A deferred result, to JSON and back, takes its answers and comes to its end."""

    class Approve(BaseModel):
        """Ask a person."""

        what: str

    async def main() -> TurnResult:
        model = ScriptedModel(call_tool("Approve", what="x"), lambda call: str(call.messages[-1].content))
        async with compose(model=model, tools=[Approve]) as host:
            first = await host.run("please", conversation_id="k")
            kept = TurnResult.from_json(json.loads(json.dumps(first.to_json())))
            assert kept.stop_reason == "deferred"
            result = await example("deferred")["go_on"](host, kept, {"Approve-0": "granted"})
            assert isinstance(result, TurnResult)
            return result

    result = asyncio.run(main())
    assert (result.text, result.conversation_id, result.degradations) == ("granted", "k", ())


def test_the_documented_file_can_be_loaded(tmp_path: Path) -> None:
    """The page's JSON is a conversation."""
    (document,) = [block.text for block in blocks(PAGE) if block.language == "json"]
    file = tmp_path / "c.json"
    file.write_text(document, encoding="utf-8")
    loaded = load_conversation(file)
    assert (loaded.id, [m.content for m in loaded.messages]) == ("order-17", ["Where is it?"])

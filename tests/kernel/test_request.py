"""Requests, their context and what a turn resolved (REQ-1, REQ-2, RES-1)."""

from __future__ import annotations

import attrs
import pytest
from langchain_core.messages import HumanMessage

from symfonic.kernel.errors import GenerationBound
from symfonic.kernel.request import RequestContext, TurnRequest
from symfonic.kernel.resolution import Entry, Resolved


def test_req_1_the_fields_and_defaults_are_the_contracts() -> None:
    """Names, order and defaults; only the prompt is needed."""
    request = TurnRequest("hi")
    assert [f.name for f in attrs.fields(TurnRequest)] == [
        "prompt", "history", "tenant", "metadata", "content", "tool_choice", "allowed_tools", "conversation_id", "config",
    ]  # fmt: skip
    assert request == TurnRequest("hi", (), None, {}, (), None, None, None, None)
    assert (request.history, request.metadata, request.content, request.allowed_tools) == ((), {}, (), None)


def test_req_1_a_request_is_frozen_and_its_metadata_read_only() -> None:
    """Nothing of a request can be set, and no container of the caller's is shared."""
    history, metadata, content, allowed = [HumanMessage("1")], {"k": 1}, [{"type": "text"}], {"a"}
    request = TurnRequest("x", history, metadata=metadata, content=content, allowed_tools=allowed)  # type: ignore[arg-type]  # converted
    for field in attrs.fields(TurnRequest):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(request, field.name, None)
    with pytest.raises(TypeError):
        request.metadata["k"] = 2  # type: ignore[index]  # read-only
    history.clear()
    metadata.clear()
    content.clear()
    allowed.clear()
    assert len(request.history) == 1
    assert request.metadata == {"k": 1}
    assert len(request.content) == 1
    assert request.allowed_tools == {"a"}


@pytest.mark.parametrize("prompt", ["", " ", "\x00", "\ud800", "🙂\udfff", "a" * 1_000_000])
def test_req_1_any_text_is_a_prompt(prompt: str) -> None:
    """The empty text, control characters, lone surrogates and a megabyte are taken as they are."""
    assert TurnRequest(prompt).prompt is prompt


@pytest.mark.parametrize("prompt", [None, b"bytes", 5, ["x"]])
def test_req_1_what_is_no_text_is_no_prompt(prompt: object) -> None:
    """Anything else is refused where it is made."""
    with pytest.raises(TypeError, match="prompt"):
        TurnRequest(prompt)  # type: ignore[arg-type]  # what is tested


def test_req_1_a_bare_text_is_one_name_and_a_bare_block_one_block() -> None:
    """Neither a tool's letters nor a block's keys are taken for a list."""
    assert TurnRequest("x", allowed_tools="refund").allowed_tools == {"refund"}  # type: ignore[arg-type]  # converted
    assert TurnRequest("x", allowed_tools=iter(["a", "b"])).allowed_tools == {"a", "b"}  # type: ignore[arg-type]  # converted
    assert TurnRequest("x", allowed_tools=[]).allowed_tools == frozenset(), "an empty ceiling is a ceiling"  # type: ignore[arg-type]  # converted
    block = {"type": "text", "text": "more"}
    assert TurnRequest("x", content=block).content == (block,)  # type: ignore[arg-type]  # converted
    assert TurnRequest("x", content="more").content == ("more",)  # type: ignore[arg-type]  # converted
    assert TurnRequest("x", content=iter([block, "y"])).content == (block, "y")  # type: ignore[arg-type]  # converted


@pytest.mark.parametrize("generation", [object(), 1, "g", None, 0])
def test_req_2_a_turn_is_tied_to_one_generation(generation: object) -> None:
    """Write-once: a second call raises, with the same generation too, and whatever the first one was."""
    context = RequestContext(TurnRequest("x"))
    assert context.generation is None
    context.bind_generation(generation)
    assert context.generation is generation
    for again in (generation, object()):
        with pytest.raises(GenerationBound, match="tied to a plan generation already; make a new RequestContext"):
            context.bind_generation(again)
    assert context.generation is generation


def test_req_2_contexts_are_told_apart_by_identity() -> None:
    """Two turns of one request are two turns."""
    request = TurnRequest("x")
    assert RequestContext(request) != RequestContext(request)
    assert RequestContext(request).resolved.capabilities == ()


def test_res_1_of_gives_an_entry_or_none() -> None:
    """A capability has an entry with its value, whatever the value; one that declined has none."""
    resolved = Resolved({"tools": frozenset("a"), "memory": None, "empty": ()})
    entry = resolved.of("tools")
    assert isinstance(entry, Entry)
    assert entry.value == frozenset("a")
    assert resolved.of("memory") == Entry(None)
    assert resolved.of("empty") == Entry(())
    assert resolved.of("other") is None
    assert Resolved().of("tools") is None
    assert resolved.capabilities == ("empty", "memory", "tools")


def test_res_1_what_was_resolved_is_immutable_for_the_turn() -> None:
    """Neither the given mapping, nor the object, nor an entry can change it; an entry names no contributor."""
    values: dict[str, object] = {"tools": 1}
    resolved = Resolved(values)
    values["tools"] = 2
    values["more"] = 3
    entry = resolved.of("tools")
    assert entry == Entry(1)
    assert resolved.capabilities == ("tools",)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        resolved._entries = {}  # type: ignore[misc]  # noqa: SLF001  # what is tested
    with pytest.raises(TypeError):
        resolved._entries["x"] = entry  # type: ignore[index]  # noqa: SLF001  # what is tested
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        entry.value = 2  # type: ignore[union-attr, misc]  # what is tested
    assert [f.name for f in attrs.fields(Entry)] == ["value"]

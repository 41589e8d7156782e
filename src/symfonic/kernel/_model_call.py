"""One call of the model: whole or streamed, within its time, and its answer made fit for the transcript."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call

from symfonic.kernel._text import scrub
from symfonic.kernel.errors import ModelFailed
from symfonic.kernel.events import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from symfonic.kernel.ports import CallableModel, Tell

__all__ = ["call_model"]


async def call_model(
    model: CallableModel,
    wire: Sequence[BaseMessage],
    config: RunnableConfig | None,
    *,
    timeout_s: float | None,
    tell: Tell | None,
) -> AIMessage:
    """Call the model once.

    Args:
        model: The bound model of the round.
        wire: What is sent.
        config: The request's.
        timeout_s: Seconds it may take.
        tell: Gets the deltas; None: nobody wants them, and the model is not streamed.

    Raises:
        ModelFailed: It raised, took too long, or answered something that is no AI message.
    """
    who = _name_of(model)
    try:
        async with asyncio.timeout(timeout_s) as limit:
            answer = await (model.ainvoke(wire, config) if tell is None else _stream(model, wire, config, tell))
    except TimeoutError as error:
        if limit.expired():
            message = f"{who} did not answer within {timeout_s:g} s; raise limits.model_timeout_s or ask less of it"
            raise ModelFailed(message) from error
        raise _failed(who, error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _failed(who, error) from error  # raised by the client itself: nobody cancelled this turn
    except (Exception, SystemExit) as error:  # sys.exit() in a client ends no process that runs turns
        raise _failed(who, error) from error
    if not isinstance(answer, AIMessage):
        message = f"{who} answered with a {type(answer).__name__}; wanted an AIMessage"
        raise ModelFailed(message)
    return _fit(answer)


def _fit(answer: AIMessage) -> AIMessage:
    """The answer as the transcript can hold and the next round can send it: whole, with content, no lone surrogates."""
    if isinstance(answer, AIMessageChunk):
        answer = message_chunk_to_message(_strictly_parsed(answer))  # type: ignore[assignment]  # an AI chunk becomes an AI message
    content = "" if answer.content is None else answer.content  # several providers say None beside tool calls
    said = {"content": content, "tool_calls": answer.tool_calls, "invalid_tool_calls": answer.invalid_tool_calls}
    fit = {name: scrub(value) for name, value in said.items()}
    return answer if fit == {name: getattr(answer, name) for name in fit} else answer.model_copy(update=fit)


def _failed(who: str, error: BaseException) -> ModelFailed:
    return ModelFailed(f"{who} raised {type(error).__name__}")


def _name_of(model: object) -> str:
    """The innermost model's class, through bindings."""
    for _ in range(8):
        inner = getattr(model, "bound", None)
        if inner is None:
            break
        model = inner
    return type(model).__name__


async def _stream(
    model: CallableModel, wire: Sequence[BaseMessage], config: RunnableConfig | None, tell: Tell
) -> object:
    """Gather a stream, to its end: an abandoned one would be closed by a task that outlives the turn."""
    pieces: list[AIMessageChunk] = []
    others: list[object] = []
    async for piece in model.astream(wire, config):
        if isinstance(piece, AIMessage):
            _tell_deltas(piece, tell)
        if isinstance(piece, AIMessageChunk):
            pieces.append(piece)
        else:
            others.append(piece)  # a model that does not stream hands out its whole message
    if others:
        return others[0]
    if not pieces:
        message = "the stream ended without a message"
        raise ValueError(message)
    return pieces[0] + pieces[1:] if len(pieces) > 1 else pieces[0]


def _strictly_parsed(whole: AIMessageChunk) -> AIMessageChunk:
    """Move calls whose arguments are no whole JSON to the unparsable ones.

    LangChain completes a cut JSON text in a chunk, so that a stream that was cut short, by a token limit say, would have
    a tool run with half its arguments. Awaited answers are parsed strictly; streaming must not change what runs (TRN-1).
    """
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for chunk in whole.tool_call_chunks:
        args = _parsed(chunk["args"] or "{}")
        if args is None:
            broken.append(invalid_tool_call(name=chunk["name"], args=chunk["args"], id=chunk["id"]))
        else:
            calls.append(tool_call(name=chunk["name"] or "", args=args, id=chunk["id"]))
    return whole.model_copy(update={"tool_calls": calls, "invalid_tool_calls": broken}) if broken else whole


def _parsed(text: str) -> dict[str, object] | None:
    """A JSON object, as LangChain parses it in an awaited answer; None for anything else."""
    try:
        args = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return args if isinstance(args, dict) else None


def _tell_deltas(piece: AIMessage, tell: Tell) -> None:
    reasoning = "".join(_reasoning(piece))
    if reasoning:
        tell(ReasoningDelta, text=reasoning)
    text = str(piece.text) if piece.content else ""
    if text:
        tell(TextDelta, text=text)
    if not isinstance(piece, AIMessageChunk):
        return
    for chunk in piece.tool_call_chunks:
        tell(ToolCallDelta, index=chunk["index"], tool=chunk["name"], tool_call_id=chunk["id"], args=chunk["args"])


def _reasoning(piece: AIMessage) -> list[str]:
    """The reasoning text of one piece, as the providers LangChain covers spell it."""
    found = piece.additional_kwargs.get("reasoning_content")
    texts = [found] if isinstance(found, str) else []
    for block in piece.content if isinstance(piece.content, list) else []:
        if isinstance(block, Mapping) and block.get("type") in ("reasoning", "thinking"):
            said = block.get("reasoning") or block.get("thinking")
            texts.extend([said] if isinstance(said, str) else [])
    return texts

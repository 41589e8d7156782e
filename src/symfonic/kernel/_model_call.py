"""One call of the model: whole or streamed, within its time, and its answer made fit for the transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message

from symfonic.kernel.errors import ModelFailed
from symfonic.kernel.events import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from symfonic.kernel.ports import CallableModel

__all__ = ["call_model", "with_call_ids"]

Tell = Callable[..., None]
"""``tell(event_class, **fields)``."""


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
    except Exception as error:
        raise _failed(who, error) from error
    if not isinstance(answer, AIMessage):
        message = f"{who} answered with a {type(answer).__name__}; wanted an AIMessage"
        raise ModelFailed(message)
    return answer


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
    pieces: list[AIMessageChunk] = []
    async for piece in model.astream(wire, config):
        if not isinstance(piece, AIMessage):
            return piece
        _tell_deltas(piece, tell)
        if not isinstance(piece, AIMessageChunk):
            return piece  # a model that does not stream hands out its whole message
        pieces.append(piece)
    if not pieces:
        message = "the stream ended without a message"
        raise ValueError(message)
    whole = pieces[0] + pieces[1:] if len(pieces) > 1 else pieces[0]  # type: ignore[operator]  # a chunk adds a list of chunks at once
    return message_chunk_to_message(whole)


def _tell_deltas(piece: AIMessage, tell: Tell) -> None:
    reasoning = "".join(_reasoning(piece))
    if reasoning:
        tell(ReasoningDelta, text=reasoning)
    text = str(piece.text)
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


def with_call_ids(answer: AIMessage, round_number: int) -> AIMessage:
    """Give every call an id of its own in its message, since results are matched by id.

    Some providers send none, or the same one twice.
    """
    seen: set[str] = set()
    fixed: dict[str, list[Mapping[str, object]]] = {}
    changed = False
    for field in ("tool_calls", "invalid_tool_calls"):
        fixed[field] = []
        for call in getattr(answer, field):
            own = call.get("id")
            if not own or own in seen:
                own, changed = f"call_{round_number}_{len(seen)}", True
            seen.add(own)
            fixed[field].append({**call, "id": own})
    return answer.model_copy(update=fixed) if changed else answer



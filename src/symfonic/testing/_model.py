"""A chat model that says what its script tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr

from symfonic.testing._calls import Call

__all__ = ["ScriptedModel", "Step"]

Step = AIMessage | str | BaseException | Callable[[Call], object]
"""One answer: a message, a text, an error to raise, or a function of the call to any of these (it may be async)."""


class ScriptedModel(BaseChatModel):
    """Answers from a script, and keeps what it was asked.

    The script is shared by all bindings of one model: the n-th call gets the n-th step. Past its end the last step is
    repeated if ``repeat`` is set, else the call raises.

    Args:
        script: The answers in order.
        repeat: Whether the last step answers every further call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: list[Any] = Field(default_factory=list)
    repeat: bool = False
    _calls: list[Call] = PrivateAttr(default_factory=list)
    _binds: list[tuple[tuple[str, ...], object]] = PrivateAttr(default_factory=list)

    def __init__(self, *steps: Step, **fields: Any) -> None:
        super().__init__(**{**fields, "script": [*steps, *fields.get("script", [])]})

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in order."""
        return self._calls

    @property
    def binds(self) -> list[tuple[tuple[str, ...], object]]:
        """Every ``bind_tools`` so far: tool names in order, and the tool choice."""
        return self._binds

    @property
    def _llm_type(self) -> str:
        return "symfonic-scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as OpenAI's form, and keep what was bound."""
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        self._binds.append((tuple(_name(schema) for schema in schemas), tool_choice))
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> tuple[Step, Call]:
        tools = tuple(_name(schema) for schema in kwargs.get("tools") or ())
        call = Call(len(self._calls), tuple(messages), tools, kwargs.get("tool_choice"))
        self._calls.append(call)
        if call.number < len(self.script):
            return self.script[call.number], call
        if self.repeat and self.script:
            return self.script[-1], call
        message = f"the script of {len(self.script)} steps has no step for call {call.number + 1}"
        raise IndexError(message)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        step, call = self._next(messages, kwargs)
        return _result(_settled(step(call) if callable(step) else step))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self._answer(messages, kwargs))

    async def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        step, call = self._next(messages, kwargs)
        said = step(call) if callable(step) else step
        if asyncio.iscoroutine(said):
            said = await said
        return _settled(said)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = await self._answer(messages, kwargs)
        for piece in _pieces(answer):
            yield ChatGenerationChunk(message=piece)


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("function", schema).get("name") or schema.get("type"))


def _settled(said: object) -> AIMessage:
    if isinstance(said, BaseException):
        raise said
    if isinstance(said, str):
        return AIMessage(said)
    return said  # type: ignore[return-value]  # whatever else a script says is handed on, to test what callers do with it


def _result(answer: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _pieces(answer: AIMessage) -> Iterator[AIMessageChunk]:
    """Word by word, then the calls, then what goes with the whole message."""
    if isinstance(answer.content, str):
        words = answer.content.split(" ")
        for place, word in enumerate(words):
            yield AIMessageChunk(content=word if place == 0 else f" {word}", id=answer.id)
    else:
        yield AIMessageChunk(content=answer.content, id=answer.id)
    yield AIMessageChunk(
        content="",
        id=answer.id,
        tool_call_chunks=_call_chunks(answer),
        usage_metadata=answer.usage_metadata,
        response_metadata=answer.response_metadata,
        additional_kwargs=answer.additional_kwargs,
    )


def _call_chunks(answer: AIMessage) -> list[Any]:
    whole = [
        {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": place, "type": "tool_call_chunk"}
        for place, c in enumerate(answer.tool_calls)
    ]
    broken = [
        {"name": c["name"], "args": c["args"], "id": c["id"], "index": len(whole) + place, "type": "tool_call_chunk"}
        for place, c in enumerate(answer.invalid_tool_calls)
    ]
    return [*whole, *broken]

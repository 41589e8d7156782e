"""`OfflineChatModel`: the rules behind langchain-core's chat model interface."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from symfonic.kernel.palette import is_provider_run
from symfonic.offline._dates import Today
from symfonic.offline._decision import WORDS, Call, decide
from symfonic.offline._offered import read_tools
from symfonic.offline._turn import Turn, call_id

__all__ = ["OfflineChatModel"]

_ToolLike = dict[str, Any] | type | Callable[..., Any] | BaseTool
_CHUNK = re.compile(r"\s*\S+|\s+")
_CHARACTERS_A_TOKEN = 4


class OfflineChatModel(BaseChatModel):
    """A deterministic, rule-based stand-in for a chat model. It is no language model.

    It calls the bound tool whose words the last human message shares most, with arguments read
    from that message by the tool's schema, and tells the tool's result. It keeps no state, opens
    no connection and reads no clock, so the same messages give the same answer. Safe to share
    between threads and tasks.

    Args:
        today: What the current day is. Without it "today" and "yesterday" mean nothing, and a date
            without a year stays without.
    """

    today: Today | None = Field(default=None, exclude=True)

    @property
    def _llm_type(self) -> str:
        return "symfonic-offline-rules"

    def bind_tools(
        self,
        tools: Sequence[_ToolLike],
        *,
        tool_choice: str | dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools to choose from.

        Args:
            tools: Tools of any shape langchain-core converts. Already converted ones are taken as
                they are; tools that a provider runs itself are kept, and never called.
            tool_choice: A tool's name, "any" or "required", "none", "auto", or the OpenAI form of
                a name.
            kwargs: Bound beside them; the rules read none of it.

        Raises:
            ValueError: The choice is neither such a word nor the name of one of the tools.
        """
        converted = [_convert(tool) for tool in tools]
        if tool_choice is not None:
            _check(_choice(tool_choice), converted)
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=converted, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._respond(messages, stop, kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._respond(messages, stop, kwargs)):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, **kwargs):
            yield chunk

    def _respond(
        self, messages: Sequence[BaseMessage], stop: Sequence[str] | None, options: dict[str, Any]
    ) -> AIMessage:
        schemas = [_convert(tool) for tool in options.get("tools") or ()]
        choice = _choice(options.get("tool_choice"))
        _check(choice, schemas)
        decision = decide(Turn.of(messages), read_tools(schemas), choice, self.today)
        text, calls = "", []
        if isinstance(decision, Call):
            name = decision.tool
            calls = [tool_call(name=name, args=decision.arguments, id=call_id(messages, name))]
        else:
            text = _cut(decision, stop or ())
        return AIMessage(
            content=text,
            tool_calls=calls,
            usage_metadata=_usage(messages, schemas, text, [dict(call) for call in calls]),
            response_metadata={
                "model_name": "offline:rules",
                "model_provider": "symfonic-offline",
                "finish_reason": "tool_calls" if calls else "stop",
            },
        )


def _convert(tool: _ToolLike) -> dict[str, Any]:
    """The OpenAI form of a tool; what has that form, or is run by a provider, as it is."""
    if isinstance(tool, dict) and ("function" in tool or tool.get("type") == "custom" or is_provider_run(tool)):
        return tool
    return convert_to_openai_tool(tool)


def _choice(given: object) -> str:
    """A tool choice as one word or name."""
    if given is None:
        return "auto"
    function = given.get("function") if isinstance(given, dict) else None
    name = function.get("name") if isinstance(function, dict) else given
    if isinstance(name, str):
        return name
    msg = (
        f"got tool_choice {given!r}, wanted a tool's name, one of {sorted(WORDS)}, or "
        '{"type": "function", "function": {"name": ...}}'
    )
    raise ValueError(msg)


def _check(choice: str, schemas: Sequence[dict[str, Any]]) -> None:
    names = [tool.name for tool in read_tools(schemas)] if choice not in WORDS else []
    if choice not in WORDS and choice not in names:
        msg = f"got tool_choice {choice!r}, wanted one of {sorted(WORDS)} or of the tools {names}"
        raise ValueError(msg)


def _cut(text: str, stop: Sequence[str]) -> str:
    for word in filter(None, stop):
        text = text.split(word, 1)[0]
    return text


def _usage(messages: Sequence[BaseMessage], schemas: object, text: str, calls: Sequence[object]) -> UsageMetadata:
    """Tokens as providers would count them, roughly: a quarter of the characters sent and said."""
    read = sum(len(message.text) for message in messages)
    read += sum(len(_json(m.tool_calls)) for m in messages if isinstance(m, AIMessage) and m.tool_calls)
    read += len(_json(schemas)) if schemas else 0
    said = len(text) + sum(len(_json(call)) for call in calls)
    tokens = [-(-size // _CHARACTERS_A_TOKEN) for size in (read, said)]
    return UsageMetadata(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _chunks(message: AIMessage) -> Iterator[AIMessageChunk]:
    """A message in pieces that add up to it: its words, or a call's name and then its arguments."""
    for word in _CHUNK.findall(str(message.text)):
        yield AIMessageChunk(content=word)
    for index, call in enumerate(message.tool_calls):
        name = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[name])
        arguments = tool_call_chunk(name=None, args=_json(call["args"]), id=None, index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[arguments])
    yield AIMessageChunk(
        content="",
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )

"""How each provider writes answers, and where each puts tools, choice, results and images in what it is sent.

Of this package, import this module only behind ``pytest.importorskip`` of both clients.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from tests.clients.server import LoopbackServer, Piece, Received, Reply, sse

__all__ = ["WIRES", "Anthropic", "Called", "OpenAIChat", "OpenAIResponses", "Said", "Wire", "called"]

Body = Mapping[str, Any]


@attrs.frozen
class Called:
    """A tool call, as a provider is to write it.

    Args:
        name: The tool's name.
        id: The call's id.
        args: The arguments' JSON text, whole or not.
    """

    name: str
    id: str
    args: str


def called(name: str, id: str, **args: object) -> Called:
    """A call with these arguments."""
    return Called(name, id, json.dumps(args))


@attrs.frozen
class Said:
    """An answer, before a provider's shape.

    Args:
        text: Its text; empty for none.
        calls: Its tool calls.
        usage: Tokens sent, tokens of these read from the cache, tokens received.
        number: Tells its ids from those of other answers.
    """

    text: str = ""
    calls: tuple[Called, ...] = ()
    usage: tuple[int, int, int] = (10, 0, 5)
    number: int = 0

    @property
    def words(self) -> list[str]:
        """The text in pieces, as a provider streams it."""
        return [f"{word} " for word in self.text.split(" ")[:-1]] + self.text.split(" ")[-1:] if self.text else []


def _pieces(text: str, size: int = 4) -> Iterator[str]:
    """A call's arguments in pieces, as a provider streams them."""
    return (text[place : place + size] for place in range(0, len(text), size))


class Wire(ABC):
    """One provider's HTTP API, as far as these tests go."""

    name: ClassVar[str]
    use: ClassVar[type[BaseChatModel]]
    path: ClassVar[str]
    first_text_event: ClassVar[int]
    """Place of the first event of a stream that holds text."""

    def model(self, server: LoopbackServer, **options: Any) -> BaseChatModel:
        """The real client, turned to the server; no retries unless the options say so."""
        return self.use(**{**self.options(server), **options})

    @abstractmethod
    def options(self, server: LoopbackServer) -> dict[str, Any]:
        """The client's options, JSON-ready."""

    def says(
        self, text: str = "", *calls: Called, usage: tuple[int, int, int] = (10, 0, 5)
    ) -> Callable[[Received], Reply]:
        """A step that answers whole or streamed, as it is asked to."""

        def answer(received: Received) -> Reply:
            body, said = received.body, Said(text, calls, usage, received.number)
            return self.streamed(said, body) if body.get("stream") else Reply.of_json(self.whole(said))

        return answer

    def streamed(self, said: Said, body: Body) -> Reply:
        """The answer as a stream, from the body that asked for it."""
        return Reply.of_events(*self.events(said, body))

    def begins(self, text: str, *rest: Piece, cut: bool = False) -> Callable[[Received], Reply]:
        """A step that streams an answer up to its text's first piece, then the rest given here, gates among it.

        Args:
            text: Of more than one word.
            rest: What comes in the place of the answer's own rest.
            cut: Whether the connection is then closed.
        """

        def answer(received: Received) -> Reply:
            reply = self.streamed(Said(text, number=received.number), received.body)
            return attrs.evolve(reply, pieces=(*reply.pieces[: self.first_text_event + 1], *rest), cut=cut)

        return answer

    def waits(self, text: str, gate: threading.Event) -> Callable[[Received], Reply]:
        """A step that streams its text's first piece, and the rest when the gate is open."""

        def answer(received: Received) -> Reply:
            reply, place = self.streamed(Said(text, number=received.number), received.body), self.first_text_event + 1
            return attrs.evolve(reply, pieces=(*reply.pieces[:place], gate, *reply.pieces[place:]))

        return answer

    def asked(self, body: Body) -> dict[str, Any]:
        """A body without what says that, and how, it is to be streamed."""
        return {name: value for name, value in body.items() if name not in ("stream", "stream_options")}

    @abstractmethod
    async def close(self, model: BaseChatModel) -> None:
        """Close the client's connections."""

    @abstractmethod
    def conversation(self, body: Body) -> list[Any]:
        """The messages of a body."""

    @abstractmethod
    def whole(self, said: Said) -> object:
        """The JSON of an answer."""

    @abstractmethod
    def events(self, said: Said, body: Body) -> Iterator[bytes]:
        """The events of a streamed answer."""

    @abstractmethod
    def error(self, kind: str, message: str) -> object:
        """The JSON of an HTTP error."""

    @abstractmethod
    def failing_event(self, message: str) -> bytes:
        """An error told within a stream."""

    @abstractmethod
    def tools(self, body: Body) -> list[str]:
        """The names of the tools sent, in order."""

    @abstractmethod
    def tool(self, name: str, description: str, parameters: Body) -> object:
        """A tool as it is sent."""

    @abstractmethod
    def choice(self, name: str) -> object:
        """A forced choice as it is sent under ``tool_choice``."""

    @abstractmethod
    def results(self, body: Body) -> list[tuple[str, object]]:
        """Call id and content of each tool result sent, in order."""

    @abstractmethod
    def image(self, data: str, mime: str) -> object:
        """An image of base64 data, as it is sent in a user's message."""

    @abstractmethod
    def user_content(self, body: Body) -> list[Any]:
        """The parts of the first user message sent."""

    @abstractmethod
    def result_content(self, text: str, data: str, mime: str) -> object:
        """The content of a tool result made of a text and an image, as it is sent."""


class OpenAIChat(Wire):
    """OpenAI's Chat Completions."""

    name = "openai-chat"
    use = ChatOpenAI
    path = "/chat/completions"
    first_text_event = 1

    def options(self, server: LoopbackServer) -> dict[str, Any]:
        """Usage in streams is to be asked for, since the client does so by itself at OpenAI's own address only."""
        at = {"model": "gpt-4.1-mini", "base_url": server.url, "max_retries": 0}
        return {**at, "use_responses_api": False, "stream_usage": True}

    async def close(self, model: BaseChatModel) -> None:
        """OpenAI's own client has them."""
        assert isinstance(model, ChatOpenAI)
        await model.root_async_client.close()

    def conversation(self, body: Body) -> list[Any]:
        """Under ``messages``."""
        return list(body["messages"])

    def whole(self, said: Said) -> object:
        """One ``chat.completion``."""
        message: dict[str, object] = {"role": "assistant", "content": said.text or None, "refusal": None}
        if said.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.args}}
                for call in said.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._reason(said), "logprobs": None}
        return {**self._head(said, "chat.completion"), "choices": [choice], "usage": self._usage(said)}

    def events(self, said: Said, body: Body) -> Iterator[bytes]:
        """``chat.completion.chunk`` events; usage in one of its own, only where asked for."""
        yield self._chunk(said, {"role": "assistant", "content": "", "refusal": None})
        for word in said.words:
            yield self._chunk(said, {"content": word})
        for place, call in enumerate(said.calls):
            function = {"name": call.name, "arguments": ""}
            yield self._chunk(
                said, {"tool_calls": [{"index": place, "id": call.id, "type": "function", "function": function}]}
            )
            for piece in _pieces(call.args):
                yield self._chunk(said, {"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        yield self._chunk(said, {}, self._reason(said))
        if (body.get("stream_options") or {}).get("include_usage"):
            yield sse({**self._head(said, "chat.completion.chunk"), "choices": [], "usage": self._usage(said)})
        yield sse("[DONE]")

    def error(self, kind: str, message: str) -> object:
        """OpenAI's error object."""
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def failing_event(self, message: str) -> bytes:
        """An event with an error in the place of choices."""
        return sse(self.error("server_error", message))

    def tools(self, body: Body) -> list[str]:
        """Under ``function``."""
        return [tool["function"]["name"] for tool in body.get("tools", ())]

    def tool(self, name: str, description: str, parameters: Body) -> object:
        """A function tool."""
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    def choice(self, name: str) -> object:
        """A named function."""
        return {"type": "function", "function": {"name": name}}

    def results(self, body: Body) -> list[tuple[str, object]]:
        """Messages of the role ``tool``."""
        return [(m["tool_call_id"], m["content"]) for m in body["messages"] if m["role"] == "tool"]

    def image(self, data: str, mime: str) -> object:
        """A data url."""
        return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}

    def user_content(self, body: Body) -> list[Any]:
        """Of the first message of the role ``user``."""
        return list(next(m["content"] for m in body["messages"] if m["role"] == "user"))

    def result_content(self, text: str, data: str, mime: str) -> object:
        """Parts, as in a user's message."""
        return [{"type": "text", "text": text}, self.image(data, mime)]

    def _head(self, said: Said, kind: str) -> dict[str, object]:
        return {"id": f"chatcmpl-{said.number}", "object": kind, "created": 1, "model": "gpt-4.1-mini-2025-04-14"}

    def _chunk(self, said: Said, delta: object, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return sse({**self._head(said, "chat.completion.chunk"), "choices": [choice], "usage": None})

    def _reason(self, said: Said) -> str:
        return "tool_calls" if said.calls else "stop"

    def _usage(self, said: Said) -> object:
        sent, cached, received = said.usage
        return {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


class OpenAIResponses(OpenAIChat):
    """OpenAI's Responses."""

    name = "openai-responses"
    path = "/responses"
    first_text_event = 3

    def options(self, server: LoopbackServer) -> dict[str, Any]:
        """The other route."""
        return {**super().options(server), "use_responses_api": True}

    def conversation(self, body: Body) -> list[Any]:
        """Under ``input``; without ``status``, which LangChain drops from streamed calls and no request needs."""
        return [{name: value for name, value in item.items() if name != "status"} for item in body["input"]]

    def asked(self, body: Body) -> dict[str, Any]:
        """Likewise without ``status``."""
        return {**super().asked(body), "input": self.conversation(body)}

    def whole(self, said: Said) -> object:
        """One ``response``."""
        return self._response(said, "completed", [item for _, item in self._items(said)])

    def events(self, said: Said, body: Body) -> Iterator[bytes]:
        """Typed events, numbered."""
        for number, (kind, fields) in enumerate(self._told(said)):
            yield sse({"type": kind, "sequence_number": number, **fields}, kind)

    def failing_event(self, message: str) -> bytes:
        """A typed error."""
        return sse(
            {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 9}, "error"
        )

    def tools(self, body: Body) -> list[str]:
        """Flat."""
        return [tool["name"] for tool in body.get("tools", ())]

    def tool(self, name: str, description: str, parameters: Body) -> object:
        """A function tool, flat."""
        return {"type": "function", "name": name, "description": description, "parameters": parameters}

    def choice(self, name: str) -> object:
        """A named function, flat."""
        return {"type": "function", "name": name}

    def results(self, body: Body) -> list[tuple[str, object]]:
        """Items of the type ``function_call_output``."""
        return [(i["call_id"], i["output"]) for i in body["input"] if i.get("type") == "function_call_output"]

    def image(self, data: str, mime: str) -> object:
        """A data url, flat."""
        return {"type": "input_image", "image_url": f"data:{mime};base64,{data}"}

    def user_content(self, body: Body) -> list[Any]:
        """Of the first input item of the role ``user``."""
        return list(next(i["content"] for i in body["input"] if i.get("role") == "user"))

    def result_content(self, text: str, data: str, mime: str) -> object:
        """Input parts."""
        return [{"type": "input_text", "text": text}, self.image(data, mime)]

    def _told(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "response.created", {"response": self._response(said, "in_progress", [])}
        items = self._items(said)
        for place, (call, item) in enumerate(items):
            at = {"output_index": place, "item_id": item["id"]}
            empty: dict[str, object] = {"content": []} if call is None else {"arguments": ""}
            yield "response.output_item.added", {**at, "item": {**item, **empty, "status": "in_progress"}}
            if call is None:
                part = {"type": "output_text", "text": "", "annotations": []}
                yield "response.content_part.added", {**at, "content_index": 0, "part": part}
                for word in said.words:
                    yield "response.output_text.delta", {**at, "content_index": 0, "delta": word, "logprobs": []}
                yield "response.output_text.done", {**at, "content_index": 0, "text": said.text, "logprobs": []}
                yield "response.content_part.done", {**at, "content_index": 0, "part": {**part, "text": said.text}}
            else:
                for piece in _pieces(call.args):
                    yield "response.function_call_arguments.delta", {**at, "delta": piece}
                yield "response.function_call_arguments.done", {**at, "name": call.name, "arguments": call.args}
            yield "response.output_item.done", {**at, "item": item}
        yield "response.completed", {"response": self._response(said, "completed", [item for _, item in items])}

    def _items(self, said: Said) -> Sequence[tuple[Called | None, dict[str, Any]]]:
        items: list[tuple[Called | None, dict[str, Any]]] = []
        if said.text:
            content = [{"type": "output_text", "text": said.text, "annotations": []}]
            items.append(
                (
                    None,
                    {
                        "type": "message",
                        "id": f"msg_{said.number}",
                        "status": "completed",
                        "role": "assistant",
                        "content": content,
                    },
                )
            )
        for place, call in enumerate(said.calls):
            item = {"type": "function_call", "id": f"fc_{said.number}_{place}", "call_id": call.id, "name": call.name}
            items.append((call, {**item, "arguments": call.args, "status": "completed"}))
        return items

    def _response(self, said: Said, status: str, output: object) -> dict[str, object]:
        sent, cached, received = said.usage
        usage = {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": received,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + received,
        }
        return {
            "id": f"resp_{said.number}",
            "object": "response",
            "created_at": 1,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": "gpt-4.1-mini-2025-04-14",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if status == "completed" else None,
        }


class Anthropic(Wire):
    """Anthropic's Messages."""

    name = "anthropic"
    use = ChatAnthropic
    path = "/v1/messages"
    first_text_event = 2

    def options(self, server: LoopbackServer) -> dict[str, Any]:
        """As a deployment would write them."""
        return {"model": "claude-haiku-4-5", "base_url": server.url, "max_retries": 0, "max_tokens": 100}

    async def close(self, model: BaseChatModel) -> None:
        """Anthropic's own client has them."""
        assert isinstance(model, ChatAnthropic)
        await model._async_client.close()

    def conversation(self, body: Body) -> list[Any]:
        """Under ``messages``."""
        return list(body["messages"])

    def whole(self, said: Said) -> object:
        """One ``message``."""
        content: list[object] = [{"type": "text", "text": said.text, "citations": None}] if said.text else []
        content.extend(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.args)}
            for call in said.calls
        )
        return {**self._head(said), "content": content, "stop_reason": self._reason(said), "usage": self._usage(said)}

    def events(self, said: Said, body: Body) -> Iterator[bytes]:
        """Blocks, each started, told in pieces and stopped."""
        usage = {**self._usage(said), "output_tokens": 1}
        yield self._event("message_start", message={**self._head(said), "content": [], "usage": usage})
        place = -1
        if said.text:
            place += 1
            yield self._event("content_block_start", index=place, content_block={"type": "text", "text": ""})
            for word in said.words:
                yield self._event("content_block_delta", index=place, delta={"type": "text_delta", "text": word})
            yield self._event("content_block_stop", index=place)
        for call in said.calls:
            place += 1
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            yield self._event("content_block_start", index=place, content_block=block)
            for piece in ("", *_pieces(call.args)):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield self._event("content_block_delta", index=place, delta=delta)
            yield self._event("content_block_stop", index=place)
        yield self._event(
            "message_delta",
            delta={"stop_reason": self._reason(said), "stop_sequence": None},
            usage=self._usage(said),  # cumulative, as the API tells it
        )
        yield self._event("message_stop")

    def error(self, kind: str, message: str) -> object:
        """Anthropic's error object."""
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    def failing_event(self, message: str) -> bytes:
        """An error event."""
        return sse(self.error("overloaded_error", message), "error")

    def tools(self, body: Body) -> list[str]:
        """By name."""
        return [tool["name"] for tool in body.get("tools", ())]

    def tool(self, name: str, description: str, parameters: Body) -> object:
        """A client tool."""
        return {"name": name, "description": description, "input_schema": parameters}

    def choice(self, name: str) -> object:
        """A named tool."""
        return {"type": "tool", "name": name}

    def results(self, body: Body) -> list[tuple[str, object]]:
        """Blocks of the type ``tool_result`` in user messages."""
        return [(block["tool_use_id"], block["content"]) for block in self.result_blocks(body)]

    def result_blocks(self, body: Body) -> list[dict[str, Any]]:
        """The whole blocks."""
        contents = [m["content"] for m in body["messages"] if m["role"] == "user" and isinstance(m["content"], list)]
        return [block for content in contents for block in content if block["type"] == "tool_result"]

    def image(self, data: str, mime: str) -> object:
        """A source of base64 data."""
        return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}

    def user_content(self, body: Body) -> list[Any]:
        """Of the first user message."""
        return list(next(m["content"] for m in body["messages"] if m["role"] == "user"))

    def result_content(self, text: str, data: str, mime: str) -> object:
        """Blocks, as in a user's message."""
        return [{"type": "text", "text": text}, self.image(data, mime)]

    def _head(self, said: Said) -> dict[str, object]:
        return {
            "id": f"msg_{said.number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5-20251001",
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _reason(self, said: Said) -> str:
        return "tool_use" if said.calls else "end_turn"

    def _usage(self, said: Said) -> dict[str, int]:
        sent, cached, received = said.usage
        # Anthropic tells the tokens read from the cache beside the others, not among them.
        return {
            "input_tokens": sent - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": received,
        }

    def _event(self, kind: str, **fields: object) -> bytes:
        return sse({"type": kind, **fields}, kind)


WIRES: tuple[Wire, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic())
"""Every route these tests go."""

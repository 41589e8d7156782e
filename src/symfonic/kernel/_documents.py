"""JSON documents: read key by key, and messages in LangChain's own form, there and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel.errors import DocumentError
from symfonic.kernel.events import plain

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Node", "messages_json", "read_messages"]

_KINDS = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "a table", type(None): "null"}


@attrs.frozen
class Node:
    """A value inside a JSON document, and the key path that leads to it.

    What it finds wrong is a :class:`DocumentError` that names the key and never shows a value: a conversation is private.

    Args:
        value: As ``json.loads`` gives it.
        path: Its key path, such as ``messages[2].data``; empty for the document itself.
    """

    value: object
    path: str = ""

    def fault(self, problem: str) -> DocumentError:
        """An error about this value."""
        return DocumentError(f"{self.path or 'the document'}: {problem}")

    def key(self, name: str) -> Node:
        """The value of a key of this table.

        Raises:
            DocumentError: This is no table, or lacks the key.
        """
        table = self.table()
        inner = f"{self.path}.{name}" if self.path else name
        if name not in table:
            raise Node(None, inner).fault("missing")
        return Node(table[name], inner)

    def table(self) -> Mapping[str, object]:
        """The value, a table."""
        if isinstance(self.value, Mapping):
            return self.value
        raise self._unfit("a table")

    def rows(self) -> Sequence[Node]:
        """The items of the value, a list."""
        if isinstance(self.value, list | tuple):
            return [Node(item, f"{self.path}[{place}]") for place, item in enumerate(self.value)]
        raise self._unfit("a list")

    def texts(self) -> tuple[str, ...]:
        """The items of the value, a list of texts."""
        return tuple(row.text() for row in self.rows())

    def text(self) -> str:
        """The value, a text."""
        if isinstance(self.value, str):
            return self.value
        raise self._unfit("a text")

    def text_or_none(self) -> str | None:
        """The value, a text or null."""
        return None if self.value is None else self.text()

    def one_of(self, known: Iterable[str]) -> str:
        """The value, one of these texts."""
        choices = tuple(known)
        if self.text() not in choices:
            raise self.fault(f"wanted one of {', '.join(choices)}")
        return self.text()

    def whole(self) -> int:
        """The value, a whole number."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value
        raise self._unfit("a whole number")

    def whole_or_none(self) -> int | None:
        """The value, a whole number or null."""
        return None if self.value is None else self.whole()

    def number(self) -> float:
        """The value, a number."""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return float(self.value)
        raise self._unfit("a number")

    def _unfit(self, wanted: str) -> DocumentError:
        got = "true or false" if isinstance(self.value, bool) else _KINDS.get(type(self.value), "something else")
        return self.fault(f"is {got}, wanted {wanted}")


def messages_json(messages: Iterable[BaseMessage]) -> list[dict[str, object]]:
    """As ``messages_to_dict`` has them, JSON-ready. An artifact that has no JSON form is left out."""
    return [_message_json(message) for message in messages]


def read_messages(listed: Node) -> tuple[BaseMessage, ...]:
    """The messages of a list that :func:`messages_json` wrote.

    Raises:
        DocumentError: It is no such list.
    """
    # Deferred: results are light to import, and a document without messages is read by nobody.
    from langchain_core.messages import messages_from_dict  # noqa: PLC0415

    messages: list[BaseMessage] = []
    for row in listed.rows():
        form = {"type": row.key("type").text(), "data": {**row.key("data").table()}}
        try:
            messages.extend(messages_from_dict([form]))
        except Exception as error:  # whatever LangChain and pydantic raise on what is no message
            problem = f"LangChain makes no message of it ({type(error).__name__}); wanted what messages_to_dict writes"
            raise row.fault(problem) from error
    return tuple(messages)


def _message_json(message: BaseMessage) -> dict[str, object]:
    fields = {name: plain(value) for name, value in message.model_dump(exclude={"artifact"}).items()}
    if message.type == "tool":  # told apart by its type text, which costs no import of langchain_core
        fields["artifact"] = _json_or_none(message.artifact)  # type: ignore[attr-defined]  # of tool messages
    return {"type": message.type, "data": fields}


def _json_or_none(artifact: object) -> object:
    try:
        json.dumps(artifact)
    except (TypeError, ValueError, RecursionError):
        return None
    return artifact

"""A conversation, and the little file it is kept in.

The format, schema 1: ``{"schema": 1, "conversation_id": text or null, "messages": [...]}``, each message in LangChain's own form
(``messages_to_dict``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import attrs

from symfonic.host.files import write_whole
from symfonic.kernel._documents import Node, messages_json, read_messages
from symfonic.kernel.errors import DocumentError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Conversation", "load_conversation", "new_id", "save_conversation"]

SCHEMA = 1


def new_id() -> str:
    """The id of a conversation nobody named."""
    return uuid4().hex


@attrs.frozen
class Conversation:
    """What was said so far.

    Args:
        id: Stands in every event of its turns.
        messages: The next turn's history.
    """

    id: str = attrs.field(factory=new_id)
    messages: tuple[BaseMessage, ...] = ()


def save_conversation(path: Path, conversation: Conversation) -> None:
    """Write a conversation to a file, whole or not at all.

    Raises:
        DocumentError: The file cannot be written.
    """
    document = {"schema": SCHEMA, "conversation_id": conversation.id, "messages": messages_json(conversation.messages)}
    text = json.dumps(document, ensure_ascii=False, indent=1)
    # A lone surrogate has no UTF-8; inside a text of the document, as JSON's own escape, it has.
    text = re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
    try:
        write_whole(path, text + "\n")
    except (OSError, ValueError) as error:  # a NUL in the path is a plain ValueError
        raise DocumentError(f"cannot be written: {_why(error)}", source=str(path)) from error


def load_conversation(path: Path) -> Conversation:
    """Read a conversation from a file; one without an id is given one.

    Raises:
        DocumentError: It cannot be read, or is no conversation.
    """
    try:
        return _read(path)
    except DocumentError as error:
        raise DocumentError(error.problem, source=str(path)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"is not UTF-8 at byte {error.start}", source=str(path)) from error
    except OSError as error:
        raise DocumentError(f"cannot be read: {_why(error)}", source=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"is no JSON: {_why(error)}", source=str(path)) from error


def _read(path: Path) -> Conversation:
    top = Node(json.loads(path.read_text(encoding="utf-8-sig")))
    schema = top.key("schema")
    if schema.whole() != SCHEMA:
        raise schema.fault(f"this version reads schema {SCHEMA}")
    name = top.key("conversation_id").text_or_none()
    return Conversation(name or new_id(), read_messages(top.key("messages")))


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__

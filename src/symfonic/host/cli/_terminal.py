"""Text of models, tools and users, made fit for a terminal."""

from __future__ import annotations

__all__ = ["shown"]

_CONTROLS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def shown(text: str) -> str:
    """The text with control characters replaced, line ends and tabs aside.

    An escape sequence that a model or a tool sends must not move the cursor, set the title or hide what was said.
    """
    return text.replace("\r\n", "\n").translate(_CONTROLS)

"""What the stand-in says: tool results as readable lines, or what it is and what it could see."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import attrs

from symfonic.offline._offered import Tool
from symfonic.offline._text import clean
from symfonic.offline._turn import Result

STAND_IN = "offline:rules, a rule-based stand-in and no language model"

_MOST_NAMES = 20
_MOST_LINES = 30
_LONGEST_LINE = 300
_LONGEST_JSON = 200_000
_DEEPEST = 4


def from_results(results: Sequence[Result]) -> str:
    """The results of this turn's calls, in order; a failed one is told as failed."""
    parts = []
    for result in results:
        lines = _bounded(_readable(result.text)) or ["nothing"]
        verb = "could not do it. It said" if result.failed else "answered"
        parts.append("\n".join((f"{clean(result.tool)} {verb}:", *lines)))
    return "\n\n".join((*parts, f"(Put together by {STAND_IN}.)"))


@attrs.frozen
class Doubt:
    """Why a tool that fits is not called: required arguments nobody gave, or, without any, another that fits as well."""

    tool: str
    missing: tuple[str, ...]


def without_call(prompt: str, tools: Sequence[Tool], *, may_call: bool = True, doubt: Doubt | None = None) -> str:
    """Why no tool was called, and which could have been."""
    names = [clean(tool.name) for tool in tools[:_MOST_NAMES]]
    more = f" and {len(tools) - len(names)} more" if len(tools) > len(names) else ""
    seen = f"The tools I can see: {', '.join(names)}{more}." if names else "I can see no tools."
    if not prompt.strip():
        why = "There is no request in the last message."
    elif tools and not may_call:
        why = "I was told to call no tool, and without one I know nothing."
    elif doubt is not None and doubt.missing:
        why = f"{clean(doubt.tool)} fits, but I cannot find in the request: {', '.join(map(clean, doubt.missing))}."
    elif doubt is not None:
        why = f"{clean(doubt.tool)} fits, and so does another tool: say more."
    else:
        why = "I can only call tools, and none fits this request by its words."
    return f"I am {STAND_IN}. {why} {seen}"


def _readable(text: str) -> Iterator[str]:
    value: object = text
    if len(text) <= _LONGEST_JSON and text.lstrip()[:1] in {"{", "["}:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, list) and inner and isinstance(inner[0], (Mapping, list)):
                yield f"{key}:"
                yield from (f"  - {_inline(item)}" for item in inner)
            else:
                yield f"{key}: {_inline(inner)}"
    elif isinstance(value, list):
        yield from (f"- {_inline(item)}" for item in value)
    else:
        yield from text.splitlines()


def _inline(value: object, depth: int = 0) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (Mapping, list)):
        return str(value)
    if depth == _DEEPEST:
        return "..."
    if isinstance(value, list):
        return ", ".join(_inline(item, depth + 1) for item in value) or "none"
    pairs = (f"{key}: {_inline(inner, depth + 1)}" for key, inner in value.items())
    text = ", ".join(pairs) or "none"
    return f"({text})" if depth else text


def _bounded(lines: Iterator[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        if len(shown) == _MOST_LINES:
            more = 1 + sum(1 for _ in lines)
            return [*shown, f"({more} more lines)"]
        one = clean(line).replace("\n", " ").rstrip()
        if one:
            shown.append(one if len(one) <= _LONGEST_LINE else f"{one[:_LONGEST_LINE]}...")
    return shown

"""Reading the docs as data."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest

ROOT = Path(os.environ.get("SYMFONIC_CHECKOUT") or Path(__file__).resolve().parents[1])
"""The checkout, whose pages are read; a copy of the tests elsewhere is told where it is, or skips."""

if not (ROOT / "README.md").is_file():
    pytest.skip(
        "this copy of the tests lies outside a checkout, and SYMFONIC_CHECKOUT names none", allow_module_level=True
    )


@attrs.frozen
class Block:
    """One fenced code block: its language, its text, and the HTML comment above it, if any."""

    language: str
    text: str
    mark: str = ""


def blocks(path: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.finditer(r"(?:<!-- ([^\n]*?) -->\s*\n)?```(\w*)\n(.*?)```", text, re.DOTALL)
    return [Block(match[2], match[3], match[1] or "") for match in found]


def marked(path: str, mark: str) -> str:
    """The text of the block under ``<!-- mark -->``."""
    (found,) = [block.text for block in blocks(path) if block.mark == mark]
    return found.strip()


def table(path: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, cells stripped of backticks."""
    text = (ROOT / path).read_text(encoding="utf-8")
    section = text.split(heading, 1)[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows: list[list[str]] = []
    for line in lines[2:]:
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
        after = section.splitlines()
        if after.index(line) + 1 < len(after) and not after[after.index(line) + 1].startswith("|"):
            break
    return rows

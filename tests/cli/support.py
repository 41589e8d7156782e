"""Deployments for the command line's tests."""

from __future__ import annotations

from pathlib import Path

from tests.host.support import FakeSite, model_source

TOOLS = """
def build(ctx):
    async def add(x: int, y: int = 0) -> str:
        "Add two numbers."
        return str(x + y)
    async def fail() -> str:
        "Always fails."
        raise OSError("sk-secret path")
    return [add, fail, {"type": "function", "function": {"name": "outside", "parameters": {"type": "object", "properties": {}}}}]

@hookimpl
def symfonic_tools(context):
    return [Tools("all", build, summary="Three tools.")]
"""

STAGE = """
def build(ctx):
    async def handle(context):
        {body}
    return handle

@hookimpl
def symfonic_stages(context):
    return [StageHandler("log", build, phase="{phase}", effects={effects!r}, summary="Looks on.")]
"""


def deployment(site: FakeSite, *steps: str, tools: bool = True, more: str = "", blocks: str = "") -> Path:
    """A deployment of a scripted model and three tools."""
    site.plugin("said", model_source(*steps))
    if tools:
        site.plugin("kit", TOOLS)
        blocks = f'[[plugin]]\nid = "kit"\n{blocks}'
    return site.deployment(f'{more}\n[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n{blocks}')


def stage(phase: str, body: str, *effects: str) -> str:
    """The source of a plugin with one stage ``log``."""
    return STAGE.format(phase=phase, body=body, effects=effects)

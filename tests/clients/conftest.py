"""Shared by the tests of real clients: a server on the loopback, and an environment that leads nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.clients.server import LoopbackServer

KEY = "sk-dummy-0123456789"
"""The key of both providers; it must stand in no event and no error."""

LEADS_AWAY = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_PROXY",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_URL",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROXY",
    "LANGSMITH_API_KEY",
    "LANGCHAIN_API_KEY",
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are dummies, no proxy stands between, nothing is traced to anybody."""
    for name in LEADS_AWAY:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server with an empty script."""
    with LoopbackServer() as running:
        yield running

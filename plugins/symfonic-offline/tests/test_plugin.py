"""The hooks and the forcing provider."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from symfonic.offline import plugin
from symfonic.offline.forcing import OfflineForcing
from symfonic.offline.model import OfflineChatModel
from symfonic.plugin import BindRequest, BuildContext, ChatModel, ConfigError, ForcingProvider, HookContext

HOOK = HookContext(plugin="offline", kernel_version="0.1.0", api_version="1.0")


class NoRouters:
    """An empty shelf."""

    ids: tuple[str, ...] = ()

    def take(self, router: str) -> Any:
        """There is none."""
        raise KeyError(router)


def context(**options: object) -> BuildContext[object]:
    """What the host hands a factory."""
    return BuildContext(plugin="offline", config=None, routers=NoRouters(), options=options, root=Path())


def test_the_plugin_page_loads_no_langchain() -> None:
    """Importing the plugin stays cheap."""
    code = "import sys, symfonic.offline.plugin; sys.exit('langchain_core' in sys.modules)"
    env = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0  # noqa: S603  # our own line


def test_the_model_is_contributed_as_rules() -> None:
    """So that `use = "offline:rules"` finds it."""
    (model,) = plugin.symfonic_chat_models(HOOK)
    assert isinstance(model, ChatModel)
    assert model.id == "rules"
    built = model.factory(context())
    assert isinstance(built, OfflineChatModel)
    assert built.today is None


def test_a_clock_is_an_option_and_the_only_one() -> None:
    """Anything else is refused, with what is wanted."""
    (model,) = plugin.symfonic_chat_models(HOOK)
    built = model.factory(context(clock=True))
    assert isinstance(built, OfflineChatModel)
    assert built.today == datetime.date.today
    for options in ({"clock": "yes"}, {"model": "x"}):
        with pytest.raises(ConfigError, match="wanted"):
            model.factory(context(**options))


def test_the_forcing_provider_knows_the_stand_in_alone() -> None:
    """Honoured for it and what inherits from it; not mine for any other, wrapped ones too."""

    class Child(OfflineChatModel):
        """A stand-in still."""

    (described,) = plugin.symfonic_forcing_providers(HOOK)
    assert isinstance(described, ForcingProvider)
    provider = described.factory(context())
    assert isinstance(provider, OfflineForcing)
    for model in (OfflineChatModel(), Child()):
        support = provider.support(model)
        assert support is not None
        assert (support.answer, support.scope) == ("honoured", "named")
    for other in (FakeListChatModel(responses=["x"]), OfflineChatModel().bind(stop=["x"]), None, 3):
        assert provider.support(other) is None


def test_binding_offers_the_selected_tools_under_the_force(library: list[dict[str, Any]]) -> None:
    """What is bound is what is told; nothing selected is the model itself."""
    model = OfflineChatModel()
    bound = OfflineForcing().bind(BindRequest(model, library, library[:2], "list_books"))
    assert (bound.offered, bound.forced_sent, bound.reason) == (("list_books", "loan_report"), True, None)
    assert bound.model.invoke("lent books in May").tool_calls[0]["name"] == "list_books"  # type: ignore[attr-defined]  # a runnable
    free = OfflineForcing().bind(BindRequest(model, library, library, None))
    assert (len(free.offered), free.forced_sent) == (3, False)
    none = OfflineForcing().bind(BindRequest(model, library, (), None))
    assert none.model is model
    assert (none.offered, none.forced_sent) == ((), False)


def test_a_hosted_tool_cannot_be_forced() -> None:
    """Nobody runs it here: bound without the force, and told."""
    hosted = {"type": "web_search"}
    bound = OfflineForcing().bind(BindRequest(OfflineChatModel(), [hosted], [hosted], "web_search"))
    assert (bound.offered, bound.forced_sent) == (("web_search",), False)
    assert bound.reason is not None
    assert "web_search" in bound.reason

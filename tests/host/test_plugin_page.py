"""The page a plugin author imports: documented whole, cheap to import, and enough."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest

import symfonic.plugin
from symfonic.plugin import (
    API_VERSION,
    BuildContext,
    ChatModel,
    Contribution,
    EventSink,
    ForcingProvider,
    HookContext,
    HookSpecs,
    RoutedTool,
    Router,
    StageHandler,
    Tools,
)
from symfonic.plugin._hooks import HOOK_KINDS

DESCRIPTORS = (Contribution, Tools, Router, StageHandler, ForcingProvider, ChatModel, EventSink)


def test_there_are_six_hooks_each_with_a_descriptor_of_its_own() -> None:
    """The specs and the table of kinds name the same hooks."""
    specs = {name for name in vars(HookSpecs) if name.startswith("symfonic_")}
    assert specs == set(HOOK_KINDS)
    assert len(HOOK_KINDS) == len(set(HOOK_KINDS.values())) == 6
    assert set(HOOK_KINDS.values()) == set(DESCRIPTORS) - {Contribution}


@pytest.mark.parametrize("hook", sorted(HOOK_KINDS))
def test_every_hook_says_when_in_which_order_may_it_return_none_and_what_a_crash_does(hook: str) -> None:
    """The four questions a plugin author has are answered for each hook, in this order."""
    documentation = inspect.getdoc(getattr(HookSpecs, hook))
    assert documentation is not None
    lines = documentation.splitlines()
    assert lines[0].startswith("Contribute ")
    starts = [line.partition(":")[0] for line in lines[2:] if not line.startswith(" ")]
    assert starts == ["When", "Order", "May return None", "A crash"]
    assert "once for each start or reload" in documentation


@pytest.mark.parametrize("hook", sorted(HOOK_KINDS))
def test_every_hook_is_a_sync_function_of_one_context(hook: str) -> None:
    """Growth is by attributes of the context, never by arguments; what it returns is named."""
    function = getattr(HookSpecs, hook)
    assert not inspect.iscoroutinefunction(function)
    assert list(inspect.signature(function).parameters) == ["self", "context"]
    assert HOOK_KINDS[hook].__name__ in str(inspect.signature(function).return_annotation)


@pytest.mark.parametrize("kind", [*DESCRIPTORS, HookContext, BuildContext, RoutedTool])
def test_every_value_is_frozen_and_every_field_documented(kind: type) -> None:
    """An author reads the class and knows each field."""
    documentation = " ".join(inspect.getdoc(base) or "" for base in kind.__mro__)
    for field in attrs.fields(kind):
        assert field.name in documentation, field.name
    one = kind(
        *["x"] * sum(field.default is attrs.NOTHING and not field.kw_only for field in attrs.fields(kind)),
        **_required(kind),
    )
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.id = "y"


def _required(kind: type) -> dict[str, object]:
    return {field.name: "x" for field in attrs.fields(kind) if field.kw_only and field.default is attrs.NOTHING}


def test_every_name_of_the_page_is_documented_and_sorted() -> None:
    """``__all__`` is what there is."""
    names = symfonic.plugin.__all__
    assert sorted(names) == sorted(set(names))
    for name in names:
        value = getattr(symfonic.plugin, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
    public = {
        name
        for name, value in vars(symfonic.plugin).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(names)


def test_importing_the_page_is_cheap() -> None:
    """It loads neither langchain_core, nor rich, nor click, nor the host, nor any plugin (architecture, rule 7)."""
    code = (
        "import sys, symfonic.plugin\n"
        "heavy = {'langchain_core', 'pydantic', 'rich', 'click', 'cattrs', 'symfonic.host', 'symfonic.capabilities', 'symfonic.offline'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_an_author_can_build_a_context_for_a_test() -> None:
    """Only ``config`` is needed; the shelf is then empty, options and metadata are read-only."""
    context: BuildContext[None] = BuildContext(config=None, options={"api_key": "sk-1"})
    assert (context.tools, context.tool_names, tuple(context.routers.ids), context.root) == ((), (), (), Path())
    with pytest.raises(KeyError, match="acme"):
        context.routers.take("acme")
    with pytest.raises(TypeError):
        context.options["x"] = 1  # type: ignore[index]  # the point of the test
    assert "sk-1" not in repr(context)


def test_one_text_is_one_name_in_a_descriptor() -> None:
    """Effects and neighbours given as one text are that text, not its letters."""
    stage = StageHandler("s", print, phase="settle", effects="tools.narrow", before="a.b", after=["c.d"])
    assert (stage.effects, stage.before, stage.after) == (("tools.narrow",), ("a.b",), ("c.d",))


def test_key_6_a_row_keeps_its_own_metadata() -> None:
    """It is read-only, and later changes of what was given do nothing."""
    given = {"score": 1}
    row = RoutedTool("a", given)
    given["score"] = 2
    assert row.metadata["score"] == 1
    assert isinstance(row.metadata, MappingProxyType)
    assert RoutedTool("a").metadata == {}


def test_the_page_has_a_version() -> None:
    """Major and minor."""
    major, minor = API_VERSION.split(".")
    assert major.isdecimal()
    assert minor.isdecimal()

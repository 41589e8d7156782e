"""The chat model a deployment names."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from pydantic import BaseModel, Field, field_validator
from tests.host.support import FakeSite

from symfonic.host.models import construct, import_class
from symfonic.kernel.errors import ConfigError
from symfonic.testing import ScriptedModel


def refused(use: str, *contributed: str) -> str:
    """Why a name is refused."""
    with pytest.raises(ConfigError) as caught:
        import_class(use, contributed)
    (problem,) = caught.value.problems
    return problem


def test_module_and_class_are_imported() -> None:
    """``module:Class`` is any importable class, nested ones too."""
    assert import_class("symfonic.testing:ScriptedModel", ()) is ScriptedModel
    assert import_class("tests.host.test_models:Holder.Inner", ()).__name__ == "Inner"


class Holder:
    """Holds a class."""

    class Inner:
        """The class."""


@pytest.mark.parametrize("use", ["", "gpt-5", "a:", ":B", "a:b:c", "a b:C", "a/b:C", "a-b:C", "a:B()"])
def test_what_is_no_class_name_is_refused(use: str) -> None:
    """Anything else is told with the two ways to write it."""
    assert refused(use).startswith(f"model.use: {use!r} is neither a selected plugin's model nor module:Class; ")


def test_a_plugins_model_that_is_misspelt_is_told() -> None:
    """Contributed ids are offered as the hint."""
    assert "did you mean 'offline:rules'?" in refused("offline-rules", "offline:rules")
    assert "select a plugin that contributes models" in refused("offline-rules")


def test_a_package_that_is_missing_is_told_with_pip_install() -> None:
    """The distribution is guessed from the module's name."""
    problem = refused("langchain_nowhere.chat:ChatX")
    assert "there is no module 'langchain_nowhere.chat'; pip install langchain-nowhere" in problem


def test_a_submodule_that_is_missing_is_that_modules_fault() -> None:
    """A package without the submodule is told as what is asked for, a dependency of it by its own name."""
    assert "there is no module 'symfonic.testing.nowhere'" in refused("symfonic.testing.nowhere:X")


def test_a_dependency_that_is_missing_is_named(site: FakeSite) -> None:
    """The class's package is there, what it imports is not: pip installing the package again would not help."""
    site.module("needs_more", "import no_such_dependency")
    assert refused("needs_more:X") == "model.use: importing needs_more needs no_such_dependency, which is not installed"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [("raise RuntimeError('boom')", "RuntimeError: boom"), ("import sys; sys.exit(3)", "SystemExit: 3")],
)
def test_a_module_that_breaks_at_import_is_told(site: FakeSite, code: str, wanted: str) -> None:
    """Whatever an import does is a ConfigError, sys.exit() too."""
    site.module("breaks_here", code)
    assert refused("breaks_here:X") == f"model.use: importing breaks_here raised {wanted}"


def test_an_unknown_class_is_told_with_the_nearest() -> None:
    """The module is there, its class is not."""
    assert refused("symfonic.testing:ScriptedModle") == (
        "model.use: symfonic.testing has no ScriptedModle; did you mean 'ScriptedModel'?"
    )


def test_a_class_a_module_imports_only_when_asked_may_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's packages import lazily: an ImportError from there is told, not raised."""

    def lazily(name: str) -> object:
        raise ImportError("no openai here")

    lazy = ModuleType("lazy_models")
    vars(lazy)["__getattr__"] = lazily
    monkeypatch.setitem(sys.modules, "lazy_models", lazy)
    assert "raised ImportError: no openai here" in refused("lazy_models:ChatX")


def test_something_else_than_a_class_is_refused() -> None:
    """A function or value of that name is no model class."""
    assert (
        refused("symfonic.testing:call_tool")
        == "model.use: symfonic.testing:call_tool is a function, wanted a chat model class"
    )


# -- options ----------------------------------------------------------------------------------------------------------


class Strict(BaseModel):
    """A pydantic model, as LangChain's chat models are."""

    model: str
    temperature: float = Field(default=0.0, le=2.0)
    api_key: str = ""

    @field_validator("api_key")
    @classmethod
    def _known(cls, value: str) -> str:
        if value:
            raise ValueError(f"{value} is no key of ours")
        return value


class Plain:
    """A class whose own error shows what it got."""

    def __init__(self, **options: object) -> None:
        raise ValueError(f"bad options {options}")


def complaint(model_class: type, **options: object) -> str:
    """What is wrong with the options; nothing of them is left in the text, nor chained for a log to print."""
    with pytest.raises(ConfigError) as caught:
        construct(model_class, options)
    assert caught.value.__suppress_context__
    return str(caught.value)


def test_options_are_the_classs_arguments() -> None:
    """What [model.options] says is handed over as it is."""
    made = construct(Strict, {"model": "x", "temperature": 1.5})
    assert isinstance(made, Strict)
    assert (made.model, made.temperature) == ("x", 1.5)


def test_pydantics_findings_are_told_each_with_its_key() -> None:
    """Every wrong option is named, without what was given."""
    text = complaint(Strict, temperature=3.25)
    assert "model.options: Strict: model: Field required" in text
    assert "model.options: Strict: temperature: Input should be less than or equal to 2" in text
    assert "3.25" not in text


def test_no_option_is_shown_whatever_the_class_raises() -> None:
    """A key in an error would land in logs: neither a plain class's text nor a validator's own shows one."""
    assert complaint(Plain, api_key="sk-hunter2") == "model.options: Plain: ValueError: bad options {'api_key': '...'}"
    assert "sk-hunter2" not in complaint(Strict, model="x", api_key="sk-hunter2")


def test_no_nested_option_is_shown() -> None:
    """Headers and lists hold keys too."""
    text = complaint(Plain, headers={"auth": ["Bearer sk-hunter2"]}, tries=3)
    assert "sk-hunter2" not in text


def test_a_class_without_pydantics_errors_is_told_by_type() -> None:
    """An unknown argument is a TypeError like any other."""

    class Small:
        """Takes nothing."""

    assert "Small: TypeError: " in complaint(Small, model="x")

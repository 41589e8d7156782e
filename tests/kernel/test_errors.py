"""The error tree: drawn, documented, worded, split (style: errors)."""

from __future__ import annotations

import inspect
import re

import pytest

from symfonic.kernel import errors
from symfonic.kernel._result import TurnResult
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.errors import (
    ConfigError,
    EffectError,
    HandlerError,
    HostError,
    LimitError,
    PaletteError,
    PlanError,
    PlanRefused,
    PluginError,
    PluginsRefused,
    StageCrashed,
    StageError,
    SymfonicError,
    ToolNameError,
    TurnFailed,
)
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import PaletteProjector, ToolPalette, tool_name
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import RequestContext, TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_turn, run_turn_sync
from symfonic.testing import ScriptedModel

CLASSES = {
    name: item
    for name, item in vars(errors).items()
    if inspect.isclass(item) and issubclass(item, BaseException) and item.__module__ == errors.__name__
}


def drawn() -> dict[str, str]:
    """Class to parent, as the module's docstring draws them."""
    parents: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    assert errors.__doc__ is not None
    for line in errors.__doc__.splitlines():
        if "──" not in line and line.strip() != "SymfonicError":
            continue
        depth = len(line) - len(line.lstrip(" │├└─"))
        names = re.findall(r"\b[A-Z]\w+\b", re.split(r"\s{6,}", line[depth:])[0])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        for name in names:
            parents[name] = stack[-1][1] if stack else ""
        stack.append((depth, names[0]))
    return parents


def test_every_error_is_drawn_under_its_parent() -> None:
    """The tree in the docstring has every class of the module and no other, each below a class it derives from."""
    parents = drawn()
    assert set(parents) == set(CLASSES)
    for name, parent in parents.items():
        wanted = CLASSES[parent] if parent else Exception
        assert issubclass(CLASSES[name], wanted), f"{name} is drawn below {parent}"
        bases = [base.__name__ for base in CLASSES[name].__bases__]
        assert (parent or "Exception") in bases or (parent == "PlanError" and "PlanError" in bases), name


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_error_is_exported_documented_and_one_of_ours(name: str) -> None:
    """Catching SymfonicError catches everything raised on purpose, and each class says what it means."""
    assert name in errors.__all__
    assert issubclass(CLASSES[name], SymfonicError)
    assert CLASSES[name].__doc__
    assert sorted(errors.__all__) == errors.__all__


async def _sync_inside_a_loop() -> None:
    run_turn_sync(compile_plan(model=ScriptedModel("x")), TurnRequest("x"))


def _twice() -> None:
    context = RequestContext(TurnRequest("x"))
    context.bind_generation(1)
    context.bind_generation(1)


def _spec(name: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name}}


def _compile(**options: object) -> None:
    compile_plan(**{"model": ScriptedModel("x"), **options})  # type: ignore[arg-type]  # test options


WORDED: list[tuple[str, object, str]] = [
    # what was got, what was wanted or what follows, the way out
    (
        "no name",
        lambda: tool_name({"x": 1, "y": 2}),
        "no name can be found for the tool a dict with the keys x, y; give it a name",
    ),
    (
        "reserved",
        lambda: _compile(tools=[_spec("any")]),
        "tool name 'any' is a word providers read .*would be lost; alias the tool",
    ),
    (
        "force",
        lambda: PaletteProjector(None, [_spec("a")], None).bind(None, "b"),
        "cannot force 'b', it is not offered; valid: a",
    ),
    ("palette", lambda: ToolPalette(["b"]).check("a"), "tools the plan does not have: b; valid: a"),  # type: ignore[arg-type]  # converted
    (
        "phase",
        lambda: _compile(stages=[Stage("s", "settel")], unbound="s"),
        "at the unknown phase 'settel'; did you mean 'settle'",
    ),
    (
        "grant",
        lambda: _compile(grants=["tools.narow"]),
        "the unknown effect 'tools.narow' is granted; did you mean 'tools.narrow'",
    ),
    (
        "ungranted",
        lambda: _compile(stages=[Stage("s", "resolve", frozenset({"tools.narrow"}))], unbound="s"),
        "stage 's' declares the effect tools.narrow, which is not granted; grant it or drop the stage",
    ),
    (
        "order",
        lambda: _compile(stages=[Stage("s", "settle", before="s")], unbound="s"),
        "wait for each other: s; drop one",
    ),  # type: ignore[arg-type]  # converted
    ("handler", lambda: _compile(handlers={"s": print}), "a handler is given for 's', which is no stage"),
    (
        "model",
        lambda: _compile(model=5),
        "the model is a int, which has no ainvoke and astream; wanted a LangChain chat model",
    ),
    (
        "limit",
        lambda: _compile(limits=Limits(rounds=0)),
        "limit rounds is 0; wanted a whole number above 0, or none at all",
    ),
    ("generation", _twice, "tied to a plan generation already; make a new RequestContext"),
]


@pytest.mark.parametrize(("raises", "text"), [row[1:] for row in WORDED], ids=[row[0] for row in WORDED])
def test_every_text_has_got_wanted_and_a_way_out(raises: object, text: str) -> None:
    """Whoever reads only the text knows what was got and what to do."""
    with pytest.raises(SymfonicError, match=text):
        raises()  # type: ignore[operator]  # a function


def test_run_turn_sync_inside_a_loop_is_a_named_error() -> None:
    """The text names the way out: the coroutine."""
    import asyncio  # noqa: PLC0415  # only here

    with pytest.raises(errors.InsideRunningLoop) as caught:
        asyncio.run(_sync_inside_a_loop())
    assert isinstance(caught.value, HostError)
    assert run_turn.__name__ in str(caught.value)


def test_plan_refused_holds_every_finding_in_text_and_group() -> None:
    """One finding stands in the line, several stand one a line; each is a PlanError and a ValueError."""
    with pytest.raises(PlanRefused) as one:
        _compile(limits=Limits(rounds=-1))
    assert str(one.value) == "the plan is refused: limit rounds is -1; wanted a whole number above 0, or none at all"
    with pytest.raises(PlanRefused) as many:
        _compile(tools=[_spec("any"), _spec("a"), _spec("a")], limits=Limits(turn_s=0), handlers={"x": None})
    assert str(many.value).splitlines() == [
        "the plan is refused, 4 problems:",
        *(f"  - {problem}" for problem in many.value.exceptions),
    ]
    assert {type(p) for p in many.value.exceptions} == {ToolNameError, HandlerError, LimitError}
    for problem in many.value.exceptions:
        assert isinstance(problem, PlanError)
        assert isinstance(problem, ValueError)
    assert isinstance(many.value, ValueError)
    assert isinstance(many.value, HostError)


def test_plan_refused_splits_and_stays_what_it_is() -> None:
    """``except*``, ``split`` and ``subgroup`` keep class, text, notes and cause."""
    group = PlanRefused([StageError("s", subjects=("x",)), EffectError("e"), StageError("t")])
    group.add_note("a note")
    group.__cause__ = ValueError("cause")
    matched, rest = group.split(StageError)
    assert isinstance(matched, PlanRefused)
    assert isinstance(rest, PlanRefused)
    assert str(matched) == "the plan is refused, 2 problems:\n  - s\n  - t"
    assert str(rest) == "the plan is refused: e"
    assert matched.__notes__ == ["a note"]
    assert matched.__cause__ is group.__cause__
    assert matched.exceptions[0].subjects == ("x",)
    assert group.subgroup(LimitError) is None
    seen: list[str] = []
    try:
        raise group
    except* StageError as stages:
        seen.append(str(stages))
    except* EffectError as effects:
        seen.append(str(effects))
    assert seen == ["the plan is refused, 2 problems:\n  - s\n  - t", "the plan is refused: e"]


def test_plugins_refused_splits_and_stays_what_it_is() -> None:
    """The host's group behaves alike and is a PluginError of no single plugin."""
    first = PluginError("boom", plugin="acme", dist="acme-router 1.2", reason="import-failed")
    second = PluginError("gone", plugin="other", reason="missing")
    group = PluginsRefused([first, second])
    assert isinstance(group, PluginError)
    assert (group.plugin, group.dist, group.reason) == ("", "", "failed")
    assert str(group) == (
        "the deployment is refused, 2 problems:\n"
        "  - plugin 'acme' (acme-router 1.2), import-failed: boom\n"
        "  - plugin 'other', missing: gone"
    )
    matched, rest = group.split(lambda e: isinstance(e, PluginError) and e.reason == "missing")
    assert isinstance(matched, PluginsRefused)
    assert isinstance(rest, PluginsRefused)
    assert str(matched) == "the deployment is refused: plugin 'other', missing: gone"
    assert rest.exceptions == (first,)


def test_plugin_error_names_plugin_distribution_and_reason() -> None:
    """What the host knows stands before the text; without a plugin the text stands alone."""
    assert str(PluginError("text")) == "text"
    error = PluginError("text", plugin="acme", dist="acme 1", reason="misconfigured")
    assert str(error) == "plugin 'acme' (acme 1), misconfigured: text"
    assert (error.plugin, error.dist, error.reason) == ("acme", "acme 1", "misconfigured")


def test_config_error_lists_every_finding_and_its_source() -> None:
    """One finding in the line, several one a line, the source in front."""
    assert str(ConfigError(["one"])) == "one"
    many = ConfigError(["one", "two"], source="symfonic.toml")
    assert str(many) == "symfonic.toml: 2 problems\n  - one\n  - two"
    assert (many.problems, many.source) == (("one", "two"), "symfonic.toml")
    assert isinstance(many, ValueError)


def test_stage_crashed_and_turn_failed_carry_what_there_is() -> None:
    """Traces and results ride on the errors."""
    trace = StageTrace(Stage("s", "settle"), Phase.SETTLE, "failed", error="ValueError: x")
    ok = StageTrace(Stage("t", "settle"), Phase.SETTLE, "ok")
    crash = StageCrashed(Phase.SETTLE, [trace], [trace, ok])
    assert str(crash) == "phase settle crashed: stage 's' failed: ValueError: x"
    assert (crash.crashed, crash.traces, crash.phase) == ((trace,), (trace, ok), Phase.SETTLE)
    result = TurnResult(text="so far")
    assert TurnFailed("it failed", result).result is result
    assert str(TurnFailed("it failed", result)) == "it failed"


def test_values_that_are_wrong_are_value_errors() -> None:
    """What a caller passed wrongly can be caught as the built-in it is."""
    for cls in (PaletteError, PlanError, ConfigError, errors.HandlersRefused, PlanRefused):
        assert issubclass(cls, ValueError)
    for cls in (errors.GenerationBound, errors.InsideRunningLoop, errors.HostClosed):
        assert issubclass(cls, RuntimeError)

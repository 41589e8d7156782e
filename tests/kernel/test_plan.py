"""Compiling a plan and what it is (IPL-1 to IPL-6)."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from symfonic.kernel._lazy import LazyModel
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect
from symfonic.kernel.errors import EffectError, HandlerError, LimitError, PlanRefused, StageError
from symfonic.kernel.forcing import Bound, ForcingSupport
from symfonic.kernel.limits import Limits
from symfonic.kernel.plan import KEY_VERSION, Bindings, Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.toolset import PlanTool, Toolset
from symfonic.kernel.turn import run_turn_sync
from symfonic.testing import RecordingSink, ScriptedModel


def add(x: int, y: int = 2) -> int:
    """Add two numbers.

    Args:
        x: The first.
        y: The second.
    """
    return x + y


def spec(name: str, description: str = "d") -> dict[str, object]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": {"type": "object"}},
    }


def compiled(**options: object) -> Plan:
    return compile_plan(**{"model": ScriptedModel("hello", repeat=True), **options})  # type: ignore[arg-type]  # test options


def problems(**options: object) -> list[str]:
    with pytest.raises(PlanRefused) as caught:
        compiled(**options)
    return [f"{type(e).__name__}: {e}" for e in caught.value.exceptions]


def ignore(_: object) -> None:
    """Handle a stage by doing nothing."""


# -- IPL-1, IPL-3 ---------------------------------------------------------------------------------------------------


def test_ipl_1_compile_takes_no_contributor() -> None:
    """Everything comes by keyword, and no parameter says who contributed what."""
    parameters = inspect.signature(compile_plan).parameters
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    wanted = {
        "model",
        "tools",
        "stages",
        "handlers",
        "grants",
        "forcing",
        "bind_with",
        "system",
        "event_sink",
        "limits",
        "capabilities",
    }
    assert wanted <= set(parameters)
    assert not [name for name in parameters if any(word in name for word in ("plugin", "dist", "source", "provenance"))]


def test_ipl_1_a_plan_has_program_grants_limits_and_bindings() -> None:
    """Each is what was declared; the least a plan needs is a model."""
    stage = Stage("s", "settle")
    sink = RecordingSink()
    limits = Limits(rounds=3)
    plan = compiled(
        stages=iter([stage]), handlers={"s": ignore}, grants=iter(["tools.narrow"]), limits=limits, event_sink=sink,
        tools=iter([add]), system="be kind", capabilities={"tools": "digest"},
    )  # fmt: skip
    assert plan.stage_program.stages == (stage,)
    assert plan.effect_grants == {"tools.narrow"}
    assert plan.limits is limits
    assert plan.bindings.event_sink is sink
    assert plan.bindings.tools == (add,)
    assert (plan.system, plan.capabilities) == ("be kind", {"tools": "digest"})
    least = compiled()
    assert (least.stage_program.stages, least.effect_grants, least.limits, least.system) == (
        (),
        frozenset(),
        Limits(),
        "",
    )


def test_ipl_1_a_bare_text_of_grants_is_one_grant() -> None:
    """Not its letters."""
    assert compiled(grants="tools.narrow").effect_grants == {"tools.narrow"}


def test_ipl_3_compile_asks_no_forcing_question() -> None:
    """The answer is taken as given: a model whose every attribute would betray a question is asked nothing."""
    asked: list[str] = []

    class Model(ScriptedModel):
        def bind_tools(self, *args: object, **kwargs: object) -> Runnable:  # type: ignore[override, type-arg]  # a fake
            asked.append("bind")
            return super().bind_tools(*args, **kwargs)  # type: ignore[arg-type]  # a fake

    plan = compiled(model=Model("x"), tools=[add], forcing=ForcingSupport("refused"))
    assert asked == []
    assert plan.bindings.palette is not None
    assert plan.bindings.palette.binding(None, "add").forced is None


def test_ipl_3_a_given_binder_binds_the_full_palette_too() -> None:
    """Whatever ``bind_with`` answers, pair or Bound, is what the plan's own binding calls."""
    answered: list[object] = [("pair", None), Bound("bound", ("add",))]
    asked: list[tuple[object, list[object], object]] = []

    def binder(model: object, tools: Sequence[object], forced: str | None) -> object:
        asked.append((model, list(tools), forced))
        return answered.pop(0)

    model = ScriptedModel("x")
    for wanted in ("pair", "bound"):
        plan = compiled(model=model, tools=[add], bind_with=binder)
        assert isinstance(plan.bindings.model, LazyModel)
        assert plan.bindings.model.bound == wanted
    assert asked == [(model, [add], None)] * 2


# -- IPL-2 ----------------------------------------------------------------------------------------------------------

STAGE = Stage("s", "settle")

REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("no handler", {"stages": [STAGE]}, "HandlerError: stage 's' has no handler"),
    (
        "no stage",
        {"stages": [STAGE], "handlers": {"s": ignore, "ss": ignore}},
        "HandlerError: a handler is given for 'ss', which is no stage; did you mean 's'?",
    ),
    ("no stage at all", {"handlers": {"x": ignore}}, "HandlerError: a handler is given for 'x', which is no stage"),
    (
        "not callable",
        {"stages": [STAGE], "handlers": {"s": "text"}},
        "HandlerError: the handler of stage 's' is a str, which cannot be called",
    ),
    (
        "two of one name",
        {"stages": [STAGE, STAGE], "handlers": {"s": ignore}},
        "StageError: 2 stages are named 's'; give each a name of its own",
    ),
    (
        "unknown phase",
        {"stages": [Stage("s", "setle")], "handlers": {"s": ignore}},
        "StageError: stage 's' is at the unknown phase 'setle'; did you mean 'settle'?",
    ),
    (
        "unknown effect",
        {"stages": [Stage("s", "resolve", frozenset({"tools.narow"}))], "handlers": {"s": ignore}},
        "EffectError: stage 's' declares the unknown effect 'tools.narow'; did you mean 'tools.narrow'?",
    ),
    (
        "not granted",
        {
            "stages": [Stage("s", "resolve", frozenset({"tools.narrow"}))],
            "handlers": {"s": ignore},
            "grants": ["tools.force"],
        },
        "EffectError: stage 's' declares the effect tools.narrow, which is not granted; grant it or drop the stage",
    ),
    (
        "unknown grant",
        {"grants": ["tools.narow"]},
        "EffectError: the unknown effect 'tools.narow' is granted; did you mean 'tools.narrow'?",
    ),
    (
        "wild grant",
        {"grants": ["zzz"]},
        (
            "EffectError: the unknown effect 'zzz' is granted; "
            "known: messages.add, tool_call.amend, tool_call.refuse, tool_result.replace, tools.force, tools.narrow"
        ),
    ),
    (
        "cycle",
        {
            "stages": [Stage("a", "settle", before=("b",)), Stage("b", "settle", before=("a",))],
            "handlers": {"a": ignore, "b": ignore},
        },
        "OrderError: stages at settle wait for each other: a, b; drop one before/after",
    ),
    (
        "two resolvers",
        {"stages": [Stage(n, "resolve", resolves="tools") for n in "ba"], "handlers": {"a": ignore, "b": ignore}},
        "StageError: capability 'tools' has 2 resolvers, a, b; keep one",
    ),
    (
        "model",
        {"model": object()},
        "HandlerError: the model is a object, which has no ainvoke and astream; wanted a LangChain chat model",
    ),
    (
        "model cannot bind",
        {"model": GenericFakeChatModel(messages=iter([AIMessage("x")])), "tools": [add]},
        "HandlerError: GenericFakeChatModel does not implement tool binding; drop the tools or take a model that binds",
    ),
    ("bind_with", {"bind_with": "bind"}, "HandlerError: bind_with is a str, which cannot be called"),
    ("sink", {"event_sink": object()}, "HandlerError: the event sink is a object, which has no emit"),
    (
        "tool",
        {"tools": [spec("none")]},
        "ToolNameError: tool name 'none' is a word providers read as a kind of tool choice, so that a force of it would be lost; alias the tool to another name",
    ),
]


@pytest.mark.parametrize(("options", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_ipl_2_what_can_be_refused_at_compile_is(options: dict[str, object], text: str) -> None:
    """Each by a named error that says what was got and the way out."""
    assert problems(**options) == [text]


def test_ipl_2_all_problems_come_in_one_error() -> None:
    """A deployment with everything wrong is told everything at once."""
    everything: dict[str, object] = {}
    for _, options, _ in REFUSED:
        for key, value in options.items():
            if isinstance(value, list):
                everything[key] = [*everything.get(key, []), *value]  # type: ignore[misc]  # lists
            elif isinstance(value, Mapping):
                everything[key] = {**value, **everything.get(key, {})}  # type: ignore[dict-item]  # mappings
            else:
                everything[key] = value
    everything["limits"] = Limits(rounds=0, turn_s=-1)
    found = problems(**everything)
    assert {text.split(":")[0] for text in found} == {
        "ToolNameError", "StageError", "EffectError", "HandlerError", "OrderError", "LimitError",
    }  # fmt: skip
    assert len(found) >= 15


def test_ipl_2_findings_say_whom_they_are_about() -> None:
    """Subjects name the tools and stages, so that the host can say whose they are."""
    with pytest.raises(PlanRefused) as caught:
        compiled(
            tools=[spec("a"), spec("a")],
            stages=[
                Stage("s", "resolve", frozenset({"tools.narrow"}), resolves="t"),
                Stage("r", "resolve", resolves="t"),
            ],
            handlers={"x": ignore, "r": 5},
        )
    subjects = [(type(e), e.subjects) for e in caught.value.exceptions]
    assert (HandlerError, ("s",)) in subjects
    assert (HandlerError, ("x",)) in subjects
    assert (HandlerError, ("r",)) in subjects
    assert (EffectError, ("s",)) in subjects
    assert (StageError, ("s", "r")) in subjects
    assert all(s for _, s in subjects)


LIMITS = [field.name for field in attrs.fields(Limits)]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan"), float("inf")])
def test_ipl_2_a_limit_that_is_no_positive_number_is_refused(name: str, value: object) -> None:
    """Every limit is above zero, or None for none at all."""
    (text,) = problems(limits=Limits(**{name: value}))  # type: ignore[arg-type]  # what is tested
    wanted = "seconds above 0" if name.endswith("_s") else "a whole number above 0"
    assert text == f"LimitError: limit {name} is {value!r}; wanted {wanted}, or none at all"


@pytest.mark.parametrize("name", LIMITS)
def test_ipl_2_fractions_are_for_seconds_only(name: str) -> None:
    """Half a round is none; half a second is a limit; None is no limit."""
    compiled(limits=Limits(**{name: None}))  # type: ignore[arg-type]  # parametrized
    compiled(limits=Limits(**{name: 1}))  # type: ignore[arg-type]  # parametrized
    if name.endswith("_s"):
        compiled(limits=Limits(**{name: 0.5}))  # type: ignore[arg-type]  # parametrized
    else:
        with pytest.raises(PlanRefused) as caught:
            compiled(limits=Limits(**{name: 0.5}))  # type: ignore[arg-type]  # what is tested
        assert isinstance(caught.value.exceptions[0], LimitError)


def test_ipl_2_a_model_needs_no_binding_without_tools_or_with_a_binder() -> None:
    """A model that cannot bind is fine for a plan without tools, or where something else binds."""
    model = GenericFakeChatModel(messages=iter([AIMessage("x")]))
    assert model.bind_tools.__func__ is BaseChatModel.bind_tools  # type: ignore[attr-defined]  # a method
    assert compiled(model=model).bindings.palette is None
    assert compiled(model=model, tools=[add], bind_with=lambda m, *_: (m, None)).bindings.palette is not None


class NoBind:
    """Can be called and has nothing to bind with."""

    async def ainvoke(self, *_: object) -> object:
        """One answer."""
        return AIMessage("x")

    def astream(self, *_: object) -> object:
        """One answer in pieces."""
        raise NotImplementedError


def test_ipl_2_a_callable_model_without_bind_tools_is_refused_for_tools_only() -> None:
    """Any object that can be called is a model; tools need bind_tools."""
    assert compiled(model=NoBind()).bindings.model.__class__ is NoBind
    assert problems(model=NoBind(), tools=[add]) == [
        "HandlerError: NoBind does not implement tool binding; drop the tools or take a model that binds"
    ]


def test_ipl_2_unbound_stages_may_lack_a_handler() -> None:
    """A composition root says which stages it binds later; all others need one."""
    plan = compiled(stages=[STAGE, Stage("t", "settle")], handlers={"t": ignore}, unbound=["s"])
    assert set(plan.bindings.stage_handlers) == {"t"}
    assert problems(stages=[STAGE, Stage("t", "settle")], unbound=["s"]) == ["HandlerError: stage 't' has no handler"]


# -- IPL-4 ----------------------------------------------------------------------------------------------------------


def rich_plan() -> Plan:
    return compiled(
        tools=[add, spec("b"), {"type": "web_search"}],
        stages=[Stage("r", "resolve", frozenset({"tools.narrow"}), resolves="tools"), Stage("s", "settle", after=())],
        handlers={"r": ignore, "s": ignore},
        grants=list(Effect),
        capabilities={"tools": "digest"},
        event_sink=RecordingSink(),
    )


@pytest.mark.parametrize("path", ["", "bindings", "limits", "stage_program"])
def test_ipl_4_a_plan_has_no_setter(path: str) -> None:
    """No attribute of plan, bindings, limits or program can be set or deleted."""
    plan = rich_plan()
    part = getattr(plan, path) if path else plan
    for field in attrs.fields(type(part)):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(part, field.name, None)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            delattr(part, field.name)
    with pytest.raises(AttributeError):
        part.something_new = 1


def public_values(value: object, seen: set[int] | None = None, path: str = "plan") -> list[tuple[str, object]]:
    """Everything reachable by public attributes and containers of our own classes, what was handed in aside."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    seen.add(id(value))
    found = [(path, value)]
    if isinstance(value, Mapping):
        for key, item in value.items():
            found += public_values(item, seen, f"{path}[{key!r}]")
    elif isinstance(value, tuple | frozenset):
        for item in value:
            found += public_values(item, seen, f"{path}[]")
    elif type(value).__module__.startswith("symfonic.kernel"):
        for name in dir(value):
            if not name.startswith("_") and not (isinstance(value, PlanTool) and name in GIVEN):
                attribute = getattr(value, name, None)
                if not inspect.isroutine(attribute):
                    found += public_values(attribute, seen, f"{path}.{name}")
    return found


GIVEN = {"given", "runner", "schema"}
"""What a planned tool hands on: the deployment's own object and what LangChain makes of it."""


def test_ipl_4_no_mutable_container_is_reachable_through_a_plan() -> None:
    """Walked by its public attributes, a plan has no list, dict or set of the kernel's own."""
    plan = rich_plan()
    assert plan.equality_key
    given_objects = {id(t) for t in plan.bindings.tools}
    mutable = [
        path
        for path, value in public_values(plan)
        if isinstance(value, list | dict | set | bytearray)
        and id(value) not in given_objects
        and "event_sink" not in path
        and ".tools[]" not in path
    ]
    assert mutable == []
    for mapping in (
        plan.capabilities,
        plan.bindings.stage_handlers,
        plan.bindings.toolset.by_name,
        plan.stage_program.by_phase,
    ):
        assert isinstance(mapping, MappingProxyType)


def test_ipl_4_a_plan_shares_no_container_with_its_caller() -> None:
    """Lists and dicts handed to compile may change afterwards; the plan does not."""
    tools, stages, handlers, grants, capabilities = [add], [STAGE], {"s": ignore}, ["tools.narrow"], {"c": "1"}
    plan = compiled(tools=tools, stages=stages, handlers=handlers, grants=grants, capabilities=capabilities)
    key = plan.equality_key
    for container in (tools, stages, handlers, grants, capabilities):
        container.clear()  # type: ignore[attr-defined]  # lists and dicts
    assert plan.tool_names == ("add",)
    assert plan.stage_program.stages == (STAGE,)
    assert plan.bindings.stage_handlers == {"s": ignore}
    assert plan.effect_grants == {"tools.narrow"}
    assert plan.capabilities == {"c": "1"}
    assert plan.equality_key == key


def test_ipl_4_bindings_palette_is_the_projector_or_none() -> None:
    """A plan without tools has none, and its model is the given one itself."""
    model = ScriptedModel("x")
    assert compiled(model=model).bindings.palette is None
    assert compiled(model=model).bindings.model is model
    with_tools = compiled(model=model, tools=[add])
    assert with_tools.bindings.palette is not None
    assert with_tools.bindings.palette.tools == (add,)
    assert with_tools.bindings.palette.bind(None) is with_tools.bindings.model


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_ipl_4_a_plan_is_neither_pickled_nor_copied(how: Callable[[Plan], object]) -> None:
    """Each process compiles its own; the text says so."""
    with pytest.raises(TypeError, match="compile one in each process, plan.equality_key proves them the same"):
        how(rich_plan())


# -- IPL-5 ----------------------------------------------------------------------------------------------------------


class Args(BaseModel):
    """Arguments."""

    x: int = Field(description="the first")


def declared(**changes: object) -> Plan:
    """A plan with something of everything, one thing changed."""
    options: dict[str, object] = {
        "tools": [add, spec("b")],
        "stages": [
            Stage("r", "resolve", frozenset({"tools.narrow"}), resolves="tools"),
            Stage("s", "settle"),
            Stage("t", "settle"),
        ],
        "handlers": dict.fromkeys(("r", "s", "t"), ignore),
        "grants": ["tools.narrow"],
        "capabilities": {"tools": "d1"},
        "system": "be kind",
        "limits": Limits(),
    }
    return compiled(**{**options, **changes})


def with_stage(old: str, **fields: object) -> list[Stage]:
    return [attrs.evolve(s, **fields) if s.name == old else s for s in declared().stage_program.stages]


def _make(name: str, doc: str, annotations: dict[str, object]) -> Callable[..., object]:
    def made(x: object) -> object:
        return x

    made.__name__ = name
    made.__doc__ = doc
    made.__annotations__ = annotations
    return made


DIFFERENT: dict[str, dict[str, object]] = {
    "tool name": {"tools": [add, spec("c")]},
    "tool description": {"tools": [add, spec("b", "other")]},
    "tool order": {"tools": [spec("b"), add]},
    "fewer tools": {"tools": [add]},
    "argument type": {"tools": [_make("add", "Add two numbers.", {"x": str}), spec("b")]},
    "who runs it": {"tools": [spec("add"), spec("b")]},
    "stage name": {"stages": with_stage("t", name="u"), "handlers": dict.fromkeys(("r", "s", "u"), ignore)},
    "stage phase": {"stages": with_stage("t", phase="pre-model")},
    "stage order": {"stages": with_stage("t", before=("s",))},
    "stage timeout": {"stages": with_stage("t", timeout_s=3)},
    "stage on_crash": {"stages": with_stage("t", on_crash="report")},
    "stage effects": {"stages": with_stage("r", effects=frozenset())},
    "stage resolves": {"stages": with_stage("r", resolves="other")},
    "fewer stages": {"stages": declared().stage_program.stages[:2], "handlers": dict.fromkeys(("r", "s"), ignore)},
    "grants": {"grants": ["tools.narrow", "tools.force"]},
    "capability": {"capabilities": {"tool": "d1"}},
    "capability configuration": {"capabilities": {"tools": "d2"}},
    "system": {"system": "be kinder"},
    "limits": {"limits": Limits(rounds=3)},
    "no limit": {"limits": Limits(rounds=None)},
    "show_tool_errors": {"show_tool_errors": True},
}


def test_ipl_5_equal_declarations_have_equal_keys_and_are_equal_plans() -> None:
    """Compiled twice, from other objects and containers, with another model and sink: equal, and one in a set."""
    one, two = (
        declared(),
        declared(model=ScriptedModel("other"), event_sink=RecordingSink(), bind_with=lambda m, *_: (m, None)),
    )
    assert one.equality_key == two.equality_key
    assert one.equality_key.startswith(f"{KEY_VERSION}:")
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    assert one != one.equality_key
    assert (one == 5) is False


@pytest.mark.parametrize("changes", DIFFERENT.values(), ids=DIFFERENT)
def test_ipl_5_a_different_declaration_has_a_different_key(changes: dict[str, object]) -> None:
    """Whatever is declared is in the key."""
    assert declared(**changes).equality_key != declared().equality_key
    assert declared(**changes) != declared()


def test_ipl_5_all_declarations_have_keys_of_their_own() -> None:
    """No two of the changes collide either."""
    keys = {declared(**changes).equality_key for changes in DIFFERENT.values()}
    assert len(keys) == len(DIFFERENT)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers())
def test_ipl_5_the_key_does_not_depend_on_the_order_plugins_load_in(seed: int) -> None:
    """Stages, handlers, grants and capabilities in any order are one declaration; tools have an order of their own."""
    shuffle = random.Random(seed).shuffle
    stages = [Stage(n, "pre-tool", frozenset({"tool_call.amend", "tool_call.refuse"})) for n in "abcd"]
    grants = [str(effect) for effect in Effect]
    handlers = [(n, ignore) for n in "abcd"]
    capabilities = [("x", "1"), ("y", "2"), ("z", "3")]
    plain = compiled(stages=stages, grants=grants, handlers=dict(handlers), capabilities=dict(capabilities))
    for container in (stages, grants, handlers, capabilities):
        shuffle(container)  # type: ignore[arg-type]  # lists
    shuffled = compiled(stages=stages, grants=grants, handlers=dict(handlers), capabilities=dict(capabilities))
    assert shuffled.equality_key == plain.equality_key


def test_ipl_5_the_key_is_computed_on_first_read() -> None:
    """Compiling makes no schema; reading the key makes them, once."""
    plan = declared()
    assert not plan.bindings.toolset.converted
    key = plan.equality_key
    assert plan.bindings.toolset.converted
    assert plan.equality_key is key


IN_ANOTHER_PROCESS = """
import sys
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.stages import Stage
from symfonic.testing import ScriptedModel

def add(x: int, tags: set[str], y: int = 2) -> int:
    '''Add.

    Args:
        x: The first.
    '''
    return x

stages = [Stage(n, "pre-tool", frozenset({"tool_call.amend", "tool_call.refuse"})) for n in ("b", "a", "c")]
plan = compile_plan(
    model=ScriptedModel("x"), tools=[add, {"type": "web_search", "domains": {"a", "b", "c", "d"}}],
    stages=stages, handlers={n: print for n in "abc"}, grants={"tool_call.amend", "tool_call.refuse", "tools.narrow"},
    capabilities={"tools": "1", "memory": "2"}, system="sys\\ud800",
)
print(plan.equality_key)
"""


def test_ipl_5_the_key_is_the_same_in_another_process_and_under_another_hash_seed() -> None:
    """Sets everywhere, lone surrogates, three seeds: one key."""
    keys = set()
    for seed in ("0", "1", "42"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        ran = subprocess.run(  # noqa: S603  # our own interpreter and script
            [sys.executable, "-c", IN_ANOTHER_PROCESS], env=env, capture_output=True, text=True, timeout=60, check=True
        )
        keys.add(ran.stdout.strip())
    assert len(keys) == 1
    assert next(iter(keys)).startswith(f"{KEY_VERSION}:")


def test_ipl_5_no_text_is_in_the_key() -> None:
    """A digest holds neither the system text, nor a description, nor a capability's configuration."""
    key = declared(
        system="s3cret-system", capabilities={"tools": "s3cret-digest"}, tools=[spec("b", "s3cret-tool")]
    ).equality_key
    assert "s3cret" not in key
    assert len(key) == len(KEY_VERSION) + 1 + 64


# -- IPL-6 ----------------------------------------------------------------------------------------------------------


def test_ipl_6_stage_handlers_map_names_to_the_given_handlers_read_only() -> None:
    """Name to the very handler that was given."""
    plan = compiled(stages=[STAGE], handlers={"s": ignore})
    handlers = plan.bindings.stage_handlers
    assert handlers == {"s": ignore}
    assert handlers["s"] is ignore
    with pytest.raises(TypeError):
        handlers["s"] = print  # type: ignore[index]  # what is tested
    with pytest.raises(TypeError):
        del handlers["s"]  # type: ignore[attr-defined]  # what is tested
    assert [f.name for f in attrs.fields(Bindings)][:5] == ["model", "palette", "tools", "stage_handlers", "event_sink"]


def test_ipl_1_a_compiled_plan_runs() -> None:
    """What compile makes is all a turn needs beside its request; the full palette is bound by the first call."""
    model = ScriptedModel("hello", "again")
    plan = compiled(model=model, tools=[add], system="be kind")
    assert run_turn_sync(plan, TurnRequest("x")).text == "hello"
    assert run_turn_sync(plan, TurnRequest("x")).text == "again"
    assert model.binds == [(("add",), None)]
    assert [m.type for m in model.calls[0].messages] == ["system", "human"]


# -- the toolset ----------------------------------------------------------------------------------------------------


def test_pal_9_schemas_are_made_once_and_cover_every_shape() -> None:
    """The toolset converts a tool when it is first asked for, and tells how much it would weigh."""

    @tool
    def made(x: int) -> int:
        """Made."""
        return x

    toolset = Toolset([add, made, Args, spec("b"), {"type": "web_search"}])
    assert toolset.names == ("add", "made", "Args", "b", "web_search")
    assert len(toolset) == 5
    assert not toolset.converted
    first = toolset.schemas([add, Args])
    assert [s["function"]["name"] for s in first] == ["add", "Args"]  # type: ignore[index]  # OpenAI's form
    assert first[0]["function"]["parameters"]["properties"]["x"]["description"] == "The first."  # type: ignore[index]  # as above
    assert not toolset.converted
    total = toolset.tokens(toolset.names)
    assert toolset.converted
    assert toolset.schemas([add])[0] is first[0]
    assert total == sum(len(json.dumps(t.schema, ensure_ascii=False)) // 4 for t in toolset.by_name.values())
    assert toolset.tokens(["b", "unknown"]) == toolset.tokens(["b"])


def test_pal_13_a_function_without_a_docstring_is_described_by_its_name() -> None:
    """LangChain wants a description; a bare function still is a tool."""

    def bare(x: int) -> int:
        return x

    schema = Toolset([bare]).by_name["bare"].schema
    assert schema["function"]["description"] == "bare"  # type: ignore[index]  # OpenAI's form


def test_pal_1_the_lazy_full_palette_is_called_awaited_or_streamed() -> None:
    """Both ways of calling bind on first use and go to the bound model."""

    async def main() -> tuple[object, list[object]]:
        answer = await compiled(tools=[add]).bindings.model.ainvoke([HumanMessage("x")])  # type: ignore[attr-defined]  # a model
        stream = compiled(tools=[add]).bindings.model.astream([HumanMessage("x")])  # type: ignore[attr-defined]  # a model
        return answer.content, [piece.content async for piece in stream]

    answer, pieces = asyncio.run(main())
    assert answer == "hello"
    assert "".join(map(str, pieces)) == "hello"


def test_ipl_2_an_unbound_name_that_is_no_stage_is_refused() -> None:
    """What is left unbound on purpose must be a stage."""
    with pytest.raises(PlanRefused, match="'nobody' is left unbound and is no stage"):
        compile_plan(model=ScriptedModel("x"), unbound=["nobody"])


def test_ipl_2_limits_of_another_type_are_refused() -> None:
    """A dict is no Limits."""
    with pytest.raises(PlanRefused, match="limits is a dict"):
        compile_plan(model=ScriptedModel("x"), limits={"rounds": 3})  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("wrong", [{"answer": "honored"}, {"answer": "unknown", "scope": "some"}])
def test_pal_10_a_misspelt_answer_is_refused(wrong: dict[str, str]) -> None:
    """Answer and scope are closed lists: a typo must not count as an answer."""
    from symfonic.kernel.forcing import ForcingSupport

    with pytest.raises(ValueError, match=r"must be in"):
        ForcingSupport(**wrong)  # type: ignore[arg-type]  # on purpose

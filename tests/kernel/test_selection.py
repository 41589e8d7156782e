"""From what a turn resolved to the binding of a round (PAL-16 to PAL-19, PAL-21, PAL-22, REQ-1's ceiling)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.base import messages_to_dict
from langchain_core.messages.utils import messages_from_dict

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import PaletteError
from symfonic.kernel.forcing import Bound, ForcingSupport
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import NOTHING, Binding, ToolPalette, binding_for, model_for
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import RequestContext, TurnRequest
from symfonic.kernel.resolution import Resolved
from symfonic.kernel.stages import Stage
from symfonic.kernel.transcript import Transcript, answered_calls, as_transcript, force_is_spent, revealed_names
from symfonic.kernel.turn import run_turn_sync
from symfonic.testing import ScriptedModel, call_tool, call_tools

UNSET = object()


def spec(name: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}


def plan_of(names: str = "cab", extra: Sequence[object] = (), **options: object) -> Plan:
    model = ScriptedModel("hello", repeat=True)
    return compile_plan(model=model, tools=[*map(spec, names), *extra], **options)  # type: ignore[arg-type]  # test options


def ctx_of(value: object = UNSET, **request: object) -> RequestContext:
    """A turn whose ``tools`` capability resolved to ``value``, or declined."""
    resolved = Resolved() if value is UNSET else Resolved({"tools": value})
    return RequestContext(TurnRequest("do it", **request), resolved)  # type: ignore[arg-type]  # test requests


def chose(plan: Plan, value: object = UNSET, transcript: object = None, **request: object) -> Binding:
    return binding_for(plan, ctx_of(value, **request), transcript=transcript)  # type: ignore[arg-type]  # what is tested


def answer(call_id: str, text: str = "done", **fields: object) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, **fields)


# -- PAL-16 ---------------------------------------------------------------------------------------------------------


def test_pal_16_without_a_projector_it_is_the_plans_model() -> None:
    """A plan without tools has no projector: its model, identity ``*``, nothing offered, whatever was resolved."""
    model = ScriptedModel("x")
    plan = compile_plan(model=model)
    assert plan.bindings.palette is None
    for value in (UNSET, frozenset("a"), ToolPalette.nothing()):
        binding = chose(plan, value, allowed_tools="a")
        assert binding == Binding(model, "*")
        assert binding.model is model
        assert binding.offered == ()
    assert model_for(plan, ctx_of()) is model


@pytest.mark.parametrize(
    ("value", "allowed", "offered"),
    [
        (UNSET, "ab", "ab"),
        (UNSET, "abcz", "cab"),
        (UNSET, "z", ""),
        (UNSET, "", ""),
        (None, "a", "a"),
        (frozenset("ab"), "bc", "b"),
        (frozenset("ab"), "c", ""),
        (frozenset("ab"), "", ""),
        (ToolPalette(frozenset("ab")), "bc", "b"),
        (ToolPalette(), "bc", "cb"),
        (ToolPalette.nothing(), "abc", ""),
        (frozenset("abc"), "ab", "ab"),
        (frozenset("z"), "ab", "ab"),
        (frozenset(), "ab", "ab"),
        (["not", "a", "palette"], "ab", "ab"),
    ],
)
def test_pal_16_every_selection_is_under_the_requests_ceiling(value: object, allowed: str, offered: str) -> None:
    """The full palette, a narrowed one and a missed one are all intersected with ``allowed_tools``; empty is nothing."""
    binding = chose(plan_of("cab"), value, allowed_tools=list(allowed))
    assert binding.offered == tuple(offered)
    assert binding.identity == ("\x02" if not offered else "*" if set(offered) == set("abc") else binding.identity)
    assert binding.identity != "*" or set(offered) == set("abc")


def test_pal_16_a_ceiling_is_applied_whether_or_not_anything_was_resolved() -> None:
    """A ceiling without any router narrows, and a context without a request has none."""
    plan = plan_of("cab")
    assert chose(plan, allowed_tools={"a"}).offered == ("a",)

    @attrs.frozen
    class Bare:
        resolved: Resolved | None = None

    assert binding_for(plan, Bare()).offered == ("c", "a", "b")  # type: ignore[arg-type]  # the optional request


def test_req_1_a_ceiling_that_covers_the_palette_is_no_narrowing() -> None:
    """With nothing cut away it is the plan's own binding."""
    plan = plan_of("cab")
    assert chose(plan, allowed_tools={"a", "b", "c", "z"}).model is plan.bindings.model


# -- PAL-17, PAL-18 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [UNSET, None])
def test_pal_17_no_entry_or_none_is_the_full_palette(value: object) -> None:
    """A turn that resolved no tools gets the plan's own binding, without a reason."""
    plan = plan_of()
    binding = chose(plan, value)
    assert binding.model is plan.bindings.model
    assert binding.reason is None
    without = RequestContext(TurnRequest("x"))
    without.resolved = None  # type: ignore[assignment]  # a turn before phase resolve
    assert model_for(plan, without) is plan.bindings.model


def test_pal_17_a_bare_frozenset_is_exactly_these_tools() -> None:
    """A frozenset narrows and lets the model choose; names the plan lacks leave without an error."""
    plan = plan_of("cab")
    binding = chose(plan, frozenset({"b", "c", "gone"}))
    assert (binding.offered, binding.forced, binding.reason) == (("c", "b"), None, None)
    assert chose(plan, ToolPalette(frozenset("bc"))).model is binding.model


@pytest.mark.parametrize("value", [{"a"}, ["a"], "a", 5, {"names": ["a"]}, ("a",)])
def test_pal_17_a_value_of_another_type_is_the_full_palette_with_a_reason(value: object) -> None:
    """A misfit narrows nothing, and the binding says what was got and wanted."""
    plan = plan_of("cab")
    binding = chose(plan, value)
    assert binding.model is plan.bindings.model
    assert binding.reason == (
        f"the tools capability resolved to a {type(value).__name__}; "
        "wanted a frozenset of names or a ToolPalette; every tool is offered"
    )
    assert chose(plan).reason is None


def test_pal_17_a_misfits_reason_stands_beside_the_binders() -> None:
    """Both reasons are kept when a force gives one too."""
    plan = plan_of("ab", forcing=ForcingSupport("refused"))
    reason = chose(plan, ["x"], tool_choice="a").reason
    assert reason is not None
    assert reason.startswith("the tools capability resolved to a list;")
    assert reason.endswith("; the force of 'a' is not sent, the provider's answer is refused")


def test_pal_17_a_misfit_is_a_degradation_of_the_turn() -> None:
    """The turn that offered everything because of a misfit says so in its result."""
    plan = compile_plan(
        model=ScriptedModel("hello"),
        tools=[spec("a")],
        stages=[Stage("route", "resolve", effects=frozenset({"tools.narrow"}), resolves="tools")],
        handlers={"route": lambda _: ["a"]},
        grants=["tools.narrow"],
    )
    result = run_turn_sync(plan, TurnRequest("x"))
    (degradation,) = result.degradations
    assert degradation.kind == "palette"
    assert degradation.reason.startswith("the tools capability resolved to a list")


@pytest.mark.parametrize(
    "palette",
    [
        ToolPalette(frozenset("az")),
        ToolPalette(forced="z"),
        ToolPalette(frozenset("a"), "b"),
        ToolPalette(reveal_by=frozenset("z")),
        ToolPalette(NOTHING, "a"),
    ],
)
def test_pal_18_a_tool_palette_is_checked_before_it_is_used(palette: ToolPalette) -> None:
    """A ToolPalette that names what the plan lacks raises, spent force or not, and binds nothing."""
    plan = plan_of("ab")
    with pytest.raises(PaletteError, match="a palette"):
        chose(plan, palette)
    assert plan.bindings.palette is not None
    assert not plan.bindings.palette._cache  # noqa: SLF001  # nothing was bound


# -- PAL-19 ---------------------------------------------------------------------------------------------------------

FORCE_A = ToolPalette(frozenset("ab"), "a")
BROKEN = AIMessage(
    "", invalid_tool_calls=[{"name": "a", "args": "{", "id": "1", "error": "no JSON", "type": "invalid_tool_call"}]
)
NAMELESS = AIMessage(
    "",
    invalid_tool_calls=[
        {"name": None, "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"},
        {"name": "a", "args": "{", "id": None, "error": None, "type": "invalid_tool_call"},
    ],
)

SPENT: list[tuple[str, list[BaseMessage], bool]] = [
    ("nothing yet", [HumanMessage("go")], False),
    ("called, not answered", [call_tool("a", id="1")], False),
    ("answered", [call_tool("a", id="1"), answer("1")], True),
    ("failed", [call_tool("a", id="1"), answer("1", status="error")], True),
    ("another tool's result", [call_tool("b", id="1"), answer("1")], False),
    ("both in one message", [call_tools(("b", {}), ("a", {}), ids=("1", "2")), answer("1"), answer("2")], True),
    ("both, only the other answered", [call_tools(("b", {}), ("a", {}), ids=("1", "2")), answer("1")], False),
    ("unparsable call of it", [BROKEN, answer("1", status="error")], True),
    ("unparsable call without name", [NAMELESS, answer("1", status="error")], False),
    ("a result that answers no call", [answer("1")], False),
    ("a result before its call", [answer("1"), call_tool("a", id="1")], False),
    ("an id used again by another tool", [call_tool("a", id="1"), call_tool("b", id="1"), answer("1")], False),
    ("an id used again by it", [call_tool("b", id="1"), call_tool("a", id="1"), answer("1")], True),
    ("a later answer", [call_tool("a", id="1"), HumanMessage("?"), AIMessage("hm"), answer("1")], True),
    (
        "a streamed call",
        [AIMessageChunk("", tool_call_chunks=[{"name": "a", "args": "{}", "id": "1", "index": 0}]), answer("1")],
        True,
    ),
    ("the tool's name alone", [ToolMessage("x", tool_call_id="9", name="a")], False),
]


@pytest.mark.parametrize(("messages", "spent"), [row[1:] for row in SPENT], ids=[row[0] for row in SPENT])
def test_pal_19_a_force_is_spent_by_a_result_for_a_call_to_that_tool(
    messages: list[BaseMessage], *, spent: bool
) -> None:
    """Decided from this turn's messages alone; the tools that are offered stay as they are when it is spent."""
    plan = plan_of("cab")
    binding = chose(plan, FORCE_A, messages)
    assert (binding.forced is None) is spent
    assert binding.offered == ("a", "b")
    assert force_is_spent(as_transcript(messages), "a") is spent


@pytest.mark.parametrize(("messages", "spent"), [row[1:] for row in SPENT], ids=[row[0] for row in SPENT])
def test_pal_19_a_resumed_turn_decides_alike(messages: list[BaseMessage], *, spent: bool) -> None:
    """A transcript that went through JSON, in another process say, gives the same decision."""
    again = messages_from_dict(json.loads(json.dumps(messages_to_dict(messages))))
    assert force_is_spent(Transcript(again), "a") is spent


def test_pal_19_a_result_from_earlier_turns_does_not_spend_it() -> None:
    """Only this turn's part counts: neither an old result, nor a new one for an old call."""
    plan = plan_of("cab")
    old = [HumanMessage("1"), call_tool("a", id="1"), answer("1"), AIMessage("ok")]
    live = [*old, HumanMessage("2")]
    assert chose(plan, FORCE_A, Transcript(live, len(old))).forced == "a"
    assert chose(plan, FORCE_A, live).forced is None, "a plain sequence is all this turn's"
    late = [HumanMessage("1"), call_tool("a", id="1"), HumanMessage("2"), answer("1")]
    assert chose(plan, FORCE_A, Transcript(late, 2)).forced == "a"
    spent = [*live, call_tool("a", id="1"), answer("1")]
    assert chose(plan, FORCE_A, Transcript(spent, len(old))).forced is None


def test_pal_19_a_provider_run_tool_is_spent_by_the_first_ai_message() -> None:
    """No result will stand here for what the provider runs, so its first answer spends the force."""
    plan = plan_of("ab", [{"type": "web_search"}])
    forced = ToolPalette(forced="web_search")
    old: list[BaseMessage] = [HumanMessage("1"), AIMessage("before")]
    live = [*old, HumanMessage("2")]
    assert chose(plan, forced, Transcript(live, 2)).forced == "web_search"
    assert chose(plan, forced, Transcript([*live, AIMessage("found")], 2)).forced is None
    assert chose(plan, forced, [AIMessageChunk("found")]).forced is None
    assert chose(plan, ToolPalette(forced="a"), [AIMessage("found")]).forced == "a"


def test_pal_19_no_state_is_kept_between_rounds() -> None:
    """The same plan and context decide by the transcript each time, forth and back."""
    plan, ctx = plan_of("cab"), ctx_of(FORCE_A)
    done = [call_tool("a", id="1"), answer("1")]
    forced = [binding_for(plan, ctx, transcript=t).forced for t in (None, done, [], done, None)]
    assert forced == ["a", None, "a", None, "a"]


_ids = st.sampled_from(["1", "2"])
_messages = st.lists(
    st.one_of(
        st.builds(lambda n, i: call_tool(n, id=i), st.sampled_from("ab"), _ids),
        st.builds(answer, _ids),
        st.builds(HumanMessage, st.just("x")),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(messages=_messages)
def test_pal_19_the_nearest_earlier_call_of_an_id_is_the_one_answered(messages: list[BaseMessage]) -> None:
    """Against a plain search backwards from each result."""
    expected = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            earlier = [
                c["name"]
                for m in messages[:place]
                if isinstance(m, AIMessage)
                for c in m.tool_calls
                if c["id"] == message.tool_call_id
            ]
            if earlier:
                expected.append((earlier[-1], message))
    assert list(answered_calls(messages)) == expected


def test_pal_19_transcript_says_where_the_turn_begins() -> None:
    """Transcript is frozen, keeps its messages as a tuple; a plain sequence and None are read as this turn's."""
    messages = [SystemMessage("s"), HumanMessage("1"), AIMessage("2")]
    transcript = Transcript(messages, 1)
    messages.append(HumanMessage("later"))
    assert len(transcript.messages) == 3
    assert list(transcript.this_turn) == messages[1:3]
    assert as_transcript(transcript) is transcript
    assert as_transcript(None) == Transcript()
    assert as_transcript(messages).this_turn == tuple(messages)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        transcript.turn_start = 0  # type: ignore[misc]  # what is tested


# -- tool_choice (REQ-1) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "choice", "offered", "forced"),
    [
        (UNSET, "a", "cab", "a"),
        (FORCE_A, "b", "ab", "b"),
        (frozenset("ab"), "c", "cab", "c"),
        (frozenset("a"), "b", "ab", "b"),
        (frozenset("z"), "b", "cab", "b"),
        (ToolPalette.nothing(), "a", "a", "a"),
        (["misfit"], "a", "cab", "a"),
    ],
)
def test_req_1_a_tool_choice_wins_over_the_router(value: object, choice: str, offered: str, forced: str) -> None:
    """The caller's own word wins over a router's force, and its tool is offered whatever was selected."""
    binding = chose(plan_of("cab"), value, tool_choice=choice)
    assert (binding.offered, binding.forced) == (tuple(offered), forced)


def test_req_1_a_spent_tool_choice_keeps_its_tool_offered() -> None:
    """When the choice is spent nothing is forced, a router's force neither, and the offered set does not move."""
    plan = plan_of("cab")
    done = [call_tool("c", id="1"), answer("1")]
    binding = chose(plan, FORCE_A, done, tool_choice="c")
    assert (binding.offered, binding.forced) == (("c", "a", "b"), None)


@pytest.mark.parametrize(
    ("value", "choice", "allowed", "valid"),
    [
        (UNSET, "z", None, "a, b, c"),
        (UNSET, "", None, "a, b, c"),
        (FORCE_A, "", None, "a, b, c"),
        (UNSET, "a", "bc", "b, c"),
        (UNSET, "a", "", "none"),
        (FORCE_A, None, "bc", "b, c"),
    ],
)
def test_req_1_a_force_outside_plan_or_ceiling_is_a_palette_error(
    value: object, choice: str | None, allowed: str | None, valid: str
) -> None:
    """A force that cannot be met names itself and the valid tools; the empty text is no tool."""
    ceiling = None if allowed is None else list(allowed)
    with pytest.raises(PaletteError) as caught:
        chose(plan_of("cab"), value, tool_choice=choice, allowed_tools=ceiling)
    forced = "a" if choice is None else choice
    assert str(caught.value) == f"cannot force {forced!r}, it is not among the plan's allowed tools; valid: {valid}"


def test_req_1_a_tool_choice_for_a_plan_without_tools_is_a_palette_error() -> None:
    """A force that cannot be met is never dropped in silence, not even where there is no tool at all."""
    with pytest.raises(PaletteError, match="cannot force 'a', the plan has no tools; valid: none"):
        chose(compile_plan(model=ScriptedModel("x")), tool_choice="a")


# -- PAL-21 ---------------------------------------------------------------------------------------------------------


def test_pal_21_while_a_force_stands_the_provider_is_told_so_each_round() -> None:
    """The forced binding is sent until the force is spent; another offered tool still runs if called meanwhile."""
    ran: list[str] = []

    def a() -> str:
        """Tool a."""
        ran.append("a")
        return "A"

    def b() -> str:
        """Tool b."""
        ran.append("b")
        return "B"

    model = ScriptedModel(call_tool("b", id="1"), call_tool("a", id="2"), "done")
    result = run_turn_sync(compile_plan(model=model, tools=[a, b]), TurnRequest("x", tool_choice="a"))
    assert [call.tool_choice for call in model.calls] == ["a", "a", None]
    assert ran == ["b", "a"]
    assert [b.forced for b in result.bindings] == ["a", "a", None]
    assert [(d.kind, d.subject, d.round) for d in result.degradations] == [("force", "a", 1)]
    assert "came back unmet: the model called b" in result.degradations[0].reason


def test_pal_21_a_force_met_is_no_degradation() -> None:
    """The same turn with an obedient model reports nothing."""

    def a() -> str:
        """Tool a."""
        return "A"

    model = ScriptedModel(call_tool("a", id="1"), "done")
    assert run_turn_sync(compile_plan(model=model, tools=[a]), TurnRequest("x", tool_choice="a")).degradations == ()


# -- PAL-22 ---------------------------------------------------------------------------------------------------------

FINDER = ToolPalette(frozenset({"find"}), reveal_by=frozenset({"find"}))


def finder_plan(**options: object) -> Plan:
    return plan_of("abcd", [spec("find")], **options)


def found(offer: object, call_id: str = "1", tool: str = "find") -> list[BaseMessage]:
    return [call_tool(tool, id=call_id), answer(call_id, artifact={"offer": offer})]


@pytest.mark.parametrize(
    ("offer", "offered"),
    [
        (["b"], ["b", "find"]),
        (("d", "a"), ["a", "d", "find"]),
        ({"d", "a"}, ["a", "d", "find"]),
        (frozenset("b"), ["b", "find"]),
        (["b", "unknown", 5, None, "b", ["c"]], ["b", "find"]),
        ([], ["find"]),
        ("abc", ["find"]),
        (b"abc", ["find"]),
        (None, ["find"]),
        (5, ["find"]),
        ({"a": 1}, ["find"]),
    ],
)
def test_pal_22_a_finders_artifact_reveals_known_names(offer: object, offered: list[str]) -> None:
    """Names under ``artifact["offer"]`` join the offered ones in plan order; another shape offers nothing."""
    assert list(chose(finder_plan(), FINDER, found(offer)).offered) == offered


@pytest.mark.parametrize("artifact", [None, "offer", ["offer"], {"other": ["a"]}, 7])
def test_pal_22_an_artifact_of_another_shape_offers_nothing(artifact: object) -> None:
    """Only a mapping with ``offer`` reveals."""
    messages = [call_tool("find", id="1"), answer("1", artifact=artifact)]
    assert chose(finder_plan(), FINDER, messages).offered == ("find",)


def test_pal_22_only_finders_results_of_this_turn_reveal() -> None:
    """Neither another tool's artifact, nor an earlier turn's, nor a result that answers no call reveals."""
    plan = finder_plan()
    other = found(["a"], tool="b")
    assert chose(plan, FINDER, other).offered == ("find",)
    assert chose(plan, FINDER, [answer("1", artifact={"offer": ["a"]})]).offered == ("find",)
    old = [*found(["a"]), HumanMessage("next")]
    assert chose(plan, FINDER, Transcript(old, 2)).offered == ("find",)
    assert chose(plan, ToolPalette(frozenset({"find"})), found(["a"])).offered == ("find",)


def test_pal_22_several_finds_add_up_first_offered_first_up_to_the_limit() -> None:
    """The plan's tool limit cuts what was offered last; strangers take no place."""
    finds = [*found(["zz", "d", "b"], "1"), *found(["a", "c"], "2")]
    offered = {
        limit: set(chose(finder_plan(limits=Limits(tools=limit)), FINDER, finds).offered)
        for limit in (None, 1, 2, 3, 4)
    }
    assert offered == {
        None: {"find", "a", "b", "c", "d"},
        1: {"find"},
        2: {"find", "d"},
        3: {"find", "d", "b"},
        4: {"find", "d", "b", "a"},
    }
    assert list(revealed_names(Transcript(finds), frozenset({"find"}))) == ["zz", "d", "b", "a", "c"]


def test_pal_22_what_is_revealed_stays_within_the_ceiling() -> None:
    """A finder lifts no ceiling, and a tool outside it takes no place under the limit."""
    plan = finder_plan(limits=Limits(tools=2))
    binding = chose(plan, FINDER, found(["a", "b"]), allowed_tools={"find", "b"})
    assert binding.offered == ("b", "find")
    assert chose(plan, FINDER, found(["a"]), allowed_tools={"a"}).offered == (), (
        "the selection under the ceiling is empty"
    )


def test_pal_22_the_full_palette_and_nothing_reveal_nothing() -> None:
    """There is nothing to add to the full palette, and a palette that offers nothing has no finder to call."""
    plan = finder_plan()
    full = ToolPalette(reveal_by=frozenset({"find"}))
    assert chose(plan, full, found(["a"])).model is plan.bindings.model
    missed = ToolPalette(frozenset(), reveal_by=frozenset({"find"}))
    assert chose(plan, missed, found(["a"])).model is plan.bindings.model
    nothing = ToolPalette(NOTHING, reveal_by=frozenset({"find"}))
    assert chose(plan, nothing, found(["a"])).offered == ()


def test_pal_22_a_revealed_tool_is_offered_from_the_next_round_on() -> None:
    """In a turn: the finder's artifact of round one widens round two, and the tool it named runs."""

    def a() -> str:
        """Tool a."""
        return "A"

    from langchain_core.tools import tool  # noqa: PLC0415  # only this test needs a tool with an artifact

    @tool(response_format="content_and_artifact")
    def find(want: str) -> tuple[str, dict[str, list[str]]]:
        """Find tools."""
        return want, {"offer": ["a"]}

    model = ScriptedModel(call_tool("find", want="x", id="1"), call_tool("a", id="2"), "done")
    plan = compile_plan(
        model=model,
        tools=[a, find, spec("z")],
        stages=[Stage("route", "resolve", effects=frozenset({"tools.narrow"}), resolves="tools")],
        handlers={"route": lambda _: FINDER},
        grants=["tools.narrow"],
    )
    result = run_turn_sync(plan, TurnRequest("x"))
    assert [call.tools for call in model.calls] == [("find",), ("a", "find"), ("a", "find")]
    assert result.text == "done"
    assert result.degradations == ()


def test_pal_16_a_binders_offered_names_are_what_counts() -> None:
    """A binder that offered fewer tools than it was given says so, and the binding of the round has its word."""
    plan = plan_of("abc", bind_with=lambda *_: Bound("m", ("a",), False, "takes one tool at most"))
    binding = chose(plan, frozenset("ab"))
    assert (binding.offered, binding.reason) == (("a",), "takes one tool at most")


# -- what the full palette's binder says ------------------------------------------------------------


def test_pal_16_the_full_palettes_binding_tells_what_its_binder_gave_up() -> None:
    """A binder that offers fewer tools or gives something up is heard when nothing narrows, too."""

    def bind_with(model: object, tools: Sequence[object], forced: str | None) -> Bound:
        return Bound(model, ("c",), reason="b and a are not for this model")

    binding = chose(plan_of(bind_with=bind_with))
    assert binding.offered == ("c",)
    assert binding.reason == "b and a are not for this model"
    assert binding.identity == "*"


def test_pal_16_a_pairs_reason_for_the_full_palette_is_told() -> None:
    """The reason of a pair is the Binding's, and everything counts as offered."""
    binding = chose(plan_of(bind_with=lambda model, tools, forced: (model, "strict mode is off")))
    assert (binding.offered, binding.reason) == (("c", "a", "b"), "strict mode is off")


def test_pal_20_bare_nothing_offers_nothing() -> None:
    """A resolver that answers with NOTHING itself means what it says."""
    binding = chose(plan_of(), NOTHING)
    assert (binding.identity, binding.offered, binding.reason) == ("\x02", (), None)

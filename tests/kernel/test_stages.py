"""Stage declarations and their order (STG-3, STG-8, STG-12, IPL-2's share of them)."""

from __future__ import annotations

import itertools
import random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import EffectError, OrderError, PlanError, PlanRefused, StageError
from symfonic.kernel.phases import PHASE_LADDER, Effect, Phase
from symfonic.kernel.stages import Stage, StageProgram, compile_stages, stage_problems
from symfonic.testing import ScriptedModel


def order(*stages: Stage, phase: str = "pre-model") -> list[str]:
    return [stage.name for stage in compile_stages(stages).of(phase)]


def refused(*stages: Stage) -> list[PlanError]:
    """What compile finds, which must be the same for one stage set in every order."""
    with pytest.raises(PlanRefused) as caught:
        compile_stages(stages)
    problems = list(caught.value.exceptions)
    assert {str(p) for p in problems} == {str(p) for p in stage_problems(reversed(stages))}
    return problems


def at(name: str, **fields: object) -> Stage:
    return Stage(name, "pre-model", **fields)  # type: ignore[arg-type]  # test fields


# -- the declaration ------------------------------------------------------------------------------------------------


def test_stg_3_a_stage_is_frozen_with_the_contracts_fields_and_defaults() -> None:
    """Names, order and defaults of the fields are the contract's; nothing can be set afterwards."""
    stage = Stage("s", "settle")
    assert [f.name for f in attrs.fields(Stage)] == [
        "name", "phase", "effects", "before", "after", "timeout_s", "resolves", "on_crash",
    ]  # fmt: skip
    assert (stage.effects, stage.before, stage.after, stage.timeout_s, stage.resolves, stage.on_crash) == (
        frozenset(), (), (), None, None, "fail",
    )  # fmt: skip
    for field in attrs.fields(Stage):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(stage, field.name, "x")
    assert hash(stage) == hash(Stage("s", Phase.SETTLE))
    assert stage == Stage("s", Phase.SETTLE)
    assert Stage("s", "settle").phase is Phase.SETTLE


def test_stg_3_a_bare_text_is_one_name_not_its_letters() -> None:
    """before, after and effects take one text or any iterable of them, and keep no list of the caller's."""
    names = ["x", "y"]
    stage = Stage("s", "resolve", "tools.narrow", before="first", after=names)  # type: ignore[arg-type]  # converted
    names.append("z")
    assert (stage.effects, stage.before, stage.after) == (frozenset({"tools.narrow"}), ("first",), ("x", "y"))


# -- the order ------------------------------------------------------------------------------------------------------


def test_stg_3_without_constraints_stages_run_by_name() -> None:
    """The smallest name is next."""
    assert order(at("b"), at("c"), at("a")) == ["a", "b", "c"]


def test_stg_3_of_all_stages_whose_predecessors_are_placed_the_smallest_is_next() -> None:
    """Not layer by layer: what becomes ready competes at once with all that wait."""
    # "a" waits for "z"; "y" is ready from the start and larger than "a", smaller than "z".
    assert order(at("z"), at("a", after=("z",)), at("y")) == ["y", "z", "a"]
    # "b" is free as soon as "a" is placed, and goes before "c", which was ready before it.
    assert order(at("c"), at("b", after=("a",)), at("a")) == ["a", "b", "c"]
    assert order(at("d", before=("a",)), at("a"), at("b", before=("d",)), at("c")) == ["b", "c", "d", "a"]


def test_stg_3_before_and_after_say_the_same_thing() -> None:
    """A constraint may stand on either stage, or on both."""
    assert order(at("a", after=("b",)), at("b")) == ["b", "a"]
    assert order(at("a"), at("b", before=("a",))) == ["b", "a"]
    assert order(at("a", after=("b", "b")), at("b", before=("a",))) == ["b", "a"]


@st.composite
def _acyclic(draw: st.DrawFn) -> list[Stage]:
    """Stages with constraints that follow a hidden order, so that they can be placed."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8))
    stages = []
    for place, name in enumerate(names):
        after = draw(st.lists(st.sampled_from(names[:place]), max_size=2)) if place else []
        before = draw(st.lists(st.sampled_from(names[place + 1 :]), max_size=2)) if place + 1 < len(names) else []
        stages.append(at(name, after=after, before=before))
    return stages


def _next_smallest(stages: list[Stage]) -> list[str]:
    """The rule, word for word and slowly."""
    waits = {s.name: set(s.after) | {o.name for o in stages if s.name in o.before} for s in stages}
    placed: list[str] = []
    while len(placed) < len(stages):
        placed.append(min(n for n, w in waits.items() if n not in placed and w <= set(placed)))
    return placed


@settings(deadline=None)
@given(stages=_acyclic(), seed=st.integers())
def test_stg_3_the_order_is_the_rules_whatever_order_plugins_load_in(stages: list[Stage], seed: int) -> None:
    """Any shuffle of the declarations gives the one order the rule describes, with all constraints held."""
    shuffled = list(stages)
    random.Random(seed).shuffle(shuffled)
    placed = order(*shuffled)
    assert placed == _next_smallest(stages)
    for stage in stages:
        assert all(placed.index(earlier) < placed.index(stage.name) for earlier in stage.after)
        assert all(placed.index(later) > placed.index(stage.name) for later in stage.before)


def test_stg_3_of_gives_a_tuple_and_stages_climb_the_ladder() -> None:
    """``of`` takes a phase or its text and gives a tuple, empty where nothing stands; ``stages`` is ladder order."""
    program = compile_stages([Stage(f"{phase}-{n}", phase) for phase in reversed(PHASE_LADDER) for n in (2, 1)])
    assert program.of("settle") == program.of(Phase.SETTLE)
    assert isinstance(program.of(Phase.SETTLE), tuple)
    assert [s.name for s in program.stages] == [f"{phase}-{n}" for phase in PHASE_LADDER for n in (1, 2)]
    assert StageProgram().of("resolve") == compile_stages(()).of("no such phase") == ()
    with pytest.raises(TypeError):
        program.by_phase[Phase.SETTLE] = ()  # type: ignore[index]  # read-only


def test_stg_3_a_program_does_not_share_the_mapping_it_was_made_from() -> None:
    """What the caller does to its own dict afterwards changes no program."""
    mine = {Phase.SETTLE: (Stage("s", "settle"),)}
    program = StageProgram(mine)
    mine.clear()
    assert len(program.stages) == 1


# -- what is refused ------------------------------------------------------------------------------------------------


def test_stg_3_cycles_are_refused_with_the_stages_in_them() -> None:
    """Stages that wait for each other, or for themselves, are named; what only waits for them is named too."""
    (problem,) = refused(at("a", after=("b",)), at("b", after=("a",)), at("free"))
    assert isinstance(problem, OrderError)
    assert str(problem) == "stages at pre-model wait for each other: a, b; drop one before/after"
    assert problem.subjects == ("a", "b")
    (alone,) = refused(at("a", before=("a",)))
    assert "wait for each other: a;" in str(alone)


def test_stg_3_duplicate_names_are_refused_across_phases() -> None:
    """Two stages of one name cannot be told apart, in whatever phases they stand."""
    (problem,) = refused(at("a"), Stage("a", "settle"))
    assert isinstance(problem, StageError)
    assert str(problem) == "2 stages are named 'a'; give each a name of its own"
    assert problem.subjects == ("a",)
    assert refused(at("a"), at("a"), at("a"))


@pytest.mark.parametrize("word", ["before", "after"])
def test_stg_3_an_unknown_neighbour_is_refused_with_a_hint(word: str) -> None:
    """A before/after name that stands in no stage of that phase is refused, one of another phase too."""
    (problem,) = refused(at("audit"), at("b", **{word: ("audti",)}))
    assert isinstance(problem, OrderError)
    assert str(problem) == f"stage 'b' is to run {word} 'audti', which is no stage at pre-model; did you mean 'audit'?"
    assert problem.subjects == ("b",)
    (elsewhere,) = refused(Stage("other", "settle"), at("b", **{word: ("other",)}))
    assert str(elsewhere).endswith("which is no stage at pre-model; known: b")


@pytest.mark.parametrize(
    ("phase", "effect"),
    [(p, e) for p, e in itertools.product(PHASE_LADDER, Effect)],
)
def test_stg_3_an_effect_of_another_phase_is_refused(phase: Phase, effect: Effect) -> None:
    """Each effect may be declared at its own phase and nowhere else."""
    home = {
        "messages.add": "prompt-assembly", "tool_call.amend": "pre-tool", "tool_call.refuse": "pre-tool",
        "tool_result.replace": "post-tool", "tools.narrow": "resolve", "tools.force": "resolve",
    }[effect]  # fmt: skip
    stage = Stage("s", phase, frozenset({effect}))
    if phase == home:
        assert compile_stages([stage]).of(phase) == (stage,)
        return
    (problem,) = refused(stage)
    assert isinstance(problem, EffectError)
    assert str(problem) == f"stage 's' at {phase} declares {effect}, an effect of phase {home}; drop it"
    assert problem.subjects == ("s",)


def test_stg_8_an_unknown_effect_is_refused_with_a_hint() -> None:
    """A misspelt effect is named with the nearest known one, a wild one with all."""
    (problem,) = refused(Stage("s", "resolve", frozenset({"tool.narrow"})))
    assert isinstance(problem, EffectError)
    assert str(problem) == "stage 's' declares the unknown effect 'tool.narrow'; did you mean 'tools.narrow'?"
    (wild,) = refused(Stage("s", "resolve", frozenset({"zzz"})))
    assert "; known: messages.add, tool_call.amend, " in str(wild)


def test_stg_3_an_unknown_phase_is_refused_with_a_hint() -> None:
    """An unknown phase is kept as given and refused together with everything else."""
    (problem,) = refused(Stage("s", "pre_model"))
    assert isinstance(problem, StageError)
    assert str(problem) == "stage 's' is at the unknown phase 'pre_model'; did you mean 'pre-model'?"
    assert problem.subjects == ("s",)


@pytest.mark.parametrize("on_crash", ["ignore", "", None, "FAIL"])
def test_stg_3_any_other_on_crash_is_refused(on_crash: str) -> None:
    """Only fail and report are known."""
    (problem,) = refused(at("s", on_crash=on_crash))
    assert isinstance(problem, StageError)
    assert str(problem) == f"stage 's' has on_crash {on_crash!r}; wanted one of fail, report"


def test_stg_12_a_guard_may_not_only_report_its_crash() -> None:
    """A stage that may refuse tool calls must not be passed over in silence."""
    (problem,) = refused(Stage("guard", "pre-tool", frozenset({"tool_call.refuse"}), on_crash="report"))
    assert isinstance(problem, StageError)
    assert "a guard that crashed must not be passed over" in str(problem)
    assert problem.subjects == ("guard",)
    compile_stages([Stage("editor", "pre-tool", frozenset({"tool_call.amend"}), on_crash="report")])


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), True, "5"])
def test_stg_3_a_timeout_that_is_no_time_is_refused(timeout_s: object) -> None:
    """Seconds above zero, or None."""
    (problem,) = refused(at("s", timeout_s=timeout_s))
    assert isinstance(problem, StageError)
    assert str(problem) == f"stage 's' has timeout_s {timeout_s!r}; wanted seconds above 0, or None"
    assert order(at("s", timeout_s=0.5), at("t", timeout_s=2)) == ["s", "t"]


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_stg_3_a_stage_needs_a_text_for_a_name(name: str) -> None:
    """A stage without a proper name is one finding among all, never a TypeError from sorting."""
    problems = refused(at(name), at("good"), Stage("bad", "nowhere"))
    assert [type(p) for p in problems] == [StageError, StageError]
    assert any(f"has the name {name!r}" in str(p) for p in problems)
    with pytest.raises(PlanRefused):
        compile_plan(model=ScriptedModel("x"), stages=[at(name), at("good")], handlers={"good": print})


def test_stg_3_only_a_resolver_resolves() -> None:
    """``resolves`` on a stage of another phase is refused; at resolve a stage may resolve nothing."""
    (problem,) = refused(at("s", resolves="tools"))
    assert str(problem) == "stage 's' at pre-model resolves 'tools'; only a stage at phase resolve can"
    assert order(Stage("s", "resolve"), phase="resolve") == ["s"]


def test_ipl_2_all_problems_of_the_stages_come_in_one_error() -> None:
    """Nothing is found one a run."""
    problems = refused(
        at("a", after=("missing",), on_crash="never", timeout_s=-1),
        at("a"),
        Stage("b", "nowhere", frozenset({"fly"}), resolves="tools"),
        at("c", before=("c",)),
    )
    assert [type(p).__name__ for p in problems] == [
        "StageError", "StageError", "StageError", "StageError", "EffectError", "StageError", "OrderError", "OrderError",
    ]  # fmt: skip
    assert all(p.subjects for p in problems), "each finding says which stages it is about"

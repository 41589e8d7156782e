"""The phase table, walked: ladder, runners, effects (STG-1, STG-2, STG-8)."""

from __future__ import annotations

import asyncio
import importlib
from enum import StrEnum

import attrs
import pytest

from symfonic.kernel import effects as effects_module
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import EFFECT_PHASES
from symfonic.kernel.phases import PHASE_LADDER, PHASES, Effect, Phase, PhaseRow
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_turn
from symfonic.testing import ScriptedModel, call_tool

RUNS_IN_TWO_ROUNDS = {
    Phase.RESOLVE: 1,
    Phase.PROMPT_ASSEMBLY: 1,
    Phase.PRE_MODEL: 2,
    Phase.POST_MODEL: 2,
    Phase.PRE_TOOL: 1,
    Phase.POST_TOOL: 1,
    Phase.SETTLE: 1,
}


def add(x: int, y: int) -> int:
    """Add x and y."""
    return x + y


def test_stg_1_the_ladder_is_all_phases_in_the_order_a_turn_climbs_them() -> None:
    """Phase is a string enum, and the ladder a tuple of all its members in the contract's order."""
    assert issubclass(Phase, StrEnum)
    assert isinstance(PHASE_LADDER, tuple)
    assert [str(phase) for phase in PHASE_LADDER] == [
        "resolve",
        "prompt-assembly",
        "pre-model",
        "post-model",
        "pre-tool",
        "post-tool",
        "settle",
    ]
    assert set(PHASE_LADDER) == set(Phase)
    assert tuple(PHASES) == PHASE_LADDER


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_1_each_row_says_when_what_and_which(phase: Phase) -> None:
    """Every row is a frozen PhaseRow with words for when it runs and what it may return."""
    row = PHASES[phase]
    assert isinstance(row, PhaseRow)
    assert row.runs
    assert row.outcome
    assert isinstance(row.handed, tuple)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        row.effects = frozenset()  # type: ignore[misc]  # what is tested
    with pytest.raises(TypeError):
        PHASES[phase] = row  # type: ignore[index]  # the table is read-only


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_1_each_phase_has_a_module_with_a_runner_and_a_frozen_context(phase: Phase) -> None:
    """The module, its runner and its context are named after the phase, and the context has exactly what the row says."""
    name = phase.replace("-", "_")
    module = importlib.import_module(f"symfonic.kernel.{name}")
    context = getattr(module, "".join(part.title() for part in phase.split("-")) + "Context")
    assert asyncio.iscoroutinefunction(getattr(module, f"run_{name}"))
    assert {context.__name__, f"run_{name}"} <= set(module.__all__)
    assert tuple(field.name for field in attrs.fields(context)) == ("plan", "request", "stage", *PHASES[phase].handed)
    assert context.__setattr__ is not object.__setattr__
    assert context.__doc__


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_2_every_phase_in_the_ladder_is_dispatched_by_a_turn(phase: Phase) -> None:
    """A stage at this rung alone is run by a turn of two rounds and one tool call, as often as its row says."""
    seen: list[object] = []
    plan = compile_plan(
        model=ScriptedModel(call_tool("add", x=1, y=2), "3"),
        tools=[add],
        stages=[Stage("probe", phase)],
        handlers={"probe": seen.append},
    )
    result = asyncio.run(run_turn(plan, TurnRequest("1 and 2?")))
    assert len(seen) == RUNS_IN_TWO_ROUNDS[phase]
    assert all(context.stage.phase is phase for context in seen)  # type: ignore[attr-defined]  # a phase's context
    assert [(t.stage.name, t.phase, t.status) for t in result.traces] == [("probe", phase, "ok")] * len(seen)


def test_stg_2_a_turn_climbs_the_ladder_in_its_order() -> None:
    """With a stage at every rung the phases first appear in ladder order, settle last."""
    seen: list[Phase] = []
    names = {str(phase): phase for phase in PHASE_LADDER}
    plan = compile_plan(
        model=ScriptedModel(call_tool("add", x=1, y=2), "3"),
        tools=[add],
        stages=[Stage(name, phase) for name, phase in names.items()],
        handlers={name: (lambda _, phase=phase: seen.append(phase)) for name, phase in names.items()},
    )
    asyncio.run(run_turn(plan, TurnRequest("1 and 2?")))
    assert tuple(dict.fromkeys(seen)) == PHASE_LADDER
    assert seen == [
        Phase.RESOLVE, Phase.PROMPT_ASSEMBLY,
        Phase.PRE_MODEL, Phase.POST_MODEL, Phase.PRE_TOOL, Phase.POST_TOOL,
        Phase.PRE_MODEL, Phase.POST_MODEL, Phase.SETTLE,
    ]  # fmt: skip


def test_stg_8_effects_are_a_closed_list_each_of_one_phase() -> None:
    """The six effects of the contract, each at home in the phase that applies it."""
    assert {str(effect): str(phase) for effect, phase in EFFECT_PHASES.items()} == {
        "messages.add": "prompt-assembly",
        "tool_call.amend": "pre-tool",
        "tool_call.refuse": "pre-tool",
        "tool_result.replace": "post-tool",
        "tools.narrow": "resolve",
        "tools.force": "resolve",
    }
    assert set(EFFECT_PHASES) == set(Effect)
    assert sum(len(row.effects) for row in PHASES.values()) == len(Effect), "no effect stands in two rows"
    with pytest.raises(TypeError):
        EFFECT_PHASES[Effect.TOOLS_FORCE] = Phase.SETTLE  # type: ignore[index]  # read-only
    assert {"Amend", "Refuse", "Replace", "Resolution"} <= set(effects_module.__all__)

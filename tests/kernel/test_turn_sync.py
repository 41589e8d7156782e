"""Turns from scripts: one background loop a process."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage

from symfonic.kernel import turn as turn_module
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import InsideRunningLoop, ModelFailed, TurnFailed
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_sync, run_turn_sync
from symfonic.testing import ScriptedModel


def test_trn_1_sync_turns_share_one_background_loop() -> None:
    """Every sync turn of a process runs on the same loop, from whatever thread it is asked."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def answer(_: object) -> AIMessage:
        loops.append(asyncio.get_running_loop())
        return AIMessage("ok")

    plan = compile_plan(model=ScriptedModel(answer, repeat=True))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: run_turn_sync(plan, TurnRequest(str(n))), range(16)))
    assert [r.text for r in results] == ["ok"] * 16
    assert len({r.turn_id for r in results}) == 16
    assert len(set(map(id, loops))) == 1


def test_trn_1_inside_a_running_loop_it_is_a_named_error() -> None:
    """Called where a loop runs, it would block it: InsideRunningLoop, no warning of a coroutine never awaited."""

    async def main() -> None:
        with pytest.raises(InsideRunningLoop, match="await run_turn"):
            run_turn_sync(compile_plan(model=ScriptedModel("ok")), TurnRequest("hi"))

    asyncio.run(main())


def test_trn_8_a_sync_turn_that_fails_raises_turn_failed() -> None:
    """The fault reaches the caller's thread with its cause and result."""
    with pytest.raises(TurnFailed) as caught:
        run_turn_sync(compile_plan(model=ScriptedModel(ValueError("x"))), TurnRequest("hi"))
    assert isinstance(caught.value.__cause__, ModelFailed)
    assert caught.value.result.stop_reason == "failed"


def test_trn_5_an_interrupt_cancels_the_turn_on_the_background_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt reaches the waiting thread; the turn is cancelled and settles, and does not go on behind its back."""
    settled: list[str] = []
    done, reached = threading.Event(), threading.Event()

    async def hang(_: object) -> AIMessage:
        reached.set()
        await asyncio.Event().wait()
        return AIMessage("never")

    async def settle(context: object) -> None:
        settled.append(context.result.stop_reason)  # type: ignore[attr-defined]
        done.set()

    plan = compile_plan(model=ScriptedModel(hang), stages=[Stage("s", Phase.SETTLE)], handlers={"s": settle})
    submit = asyncio.run_coroutine_threadsafe

    def interrupted(*args: object) -> object:
        future = submit(*args)  # type: ignore[arg-type]  # passed on

        def result(_: object = None) -> None:
            reached.wait(10)
            raise KeyboardInterrupt

        monkeypatch.setattr(future, "result", result)
        return future

    monkeypatch.setattr(turn_module.asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_turn_sync(plan, TurnRequest("hi"))
    assert done.wait(10)
    assert settled == ["cancelled"]


def test_trn_1_a_forked_child_gets_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process is another than the loop's, whose thread is gone, a new loop is started."""

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    background = turn_module._Background()
    monkeypatch.setattr(turn_module, "_background", background)
    first = run_sync(loop())
    assert run_sync(loop()) is first
    monkeypatch.setattr(background, "_pid", -2)
    second = run_sync(loop())
    assert second is not first
    for one in (first, second):
        [thread] = [t for t in threading.enumerate() if getattr(t, "_target", None) == one.run_forever]
        one.call_soon_threadsafe(one.stop)
        thread.join(10)
        one.close()

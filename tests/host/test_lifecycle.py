"""Generations: what a host opened, and when it is closed."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.host.support import FakeSite, composed, model_source, settle, using

from symfonic.host import Host, compose
from symfonic.host.config import Deployment
from symfonic.host.lifecycle import Generation
from symfonic.host.workbench import Code
from symfonic.kernel.errors import ConfigError, HostClosed, HostError, PluginError, SymfonicError
from symfonic.kernel.events import TurnStarted
from symfonic.plugin import BuildContext, StageHandler, Tools
from symfonic.testing import Call, ScriptedModel

Ctx = BuildContext[Any]


class Held:
    """A model's answer that waits until it is let go."""

    def __init__(self, text: str = "held") -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.text = text

    async def __call__(self, call: Call) -> AIMessage:
        """Wait, then answer."""
        self.asked.set()
        await self.go.wait()
        return AIMessage(self.text)


class Opens:
    """Counts what its factory opens and closes."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.count = 0

    def build(self, context: Ctx) -> object:
        """A context manager of its own for each generation."""
        self.count += 1
        return self._opened(self.count)

    @asynccontextmanager
    async def _opened(self, number: int) -> AsyncIterator[list[object]]:
        self.log.append(f"open {number}")
        try:
            yield []
        finally:
            self.log.append(f"close {number}")


def holding(*steps: object) -> tuple[Host, Opens]:
    """A host whose model is scripted, and what it opens."""
    opens = Opens()
    return composed(using(Tools("t", opens.build)), model=ScriptedModel(*steps, repeat=True)), opens  # type: ignore[arg-type]  # steps


DEPLOYMENT = """
[model]
use = "{use}"
[limits]
rounds = {rounds}
[[plugin]]
id = "one"
[[plugin]]
id = "two"
"""


def test_reload_reads_the_file_again_and_new_turns_run_on_it(site: FakeSite) -> None:
    """What the file says now is what the next turn gets; modules are not imported again."""
    site.plugin("one", model_source("'from one'") + "\nIMPORTS = []\n")
    site.plugin("two", model_source("'from two'"))

    async def main() -> None:
        file = site.deployment(DEPLOYMENT.format(use="one:scripted", rounds=3))
        async with Host.from_file(file) as host:
            first = host.plan
            assert (await host.run("hi")).text == "from one"
            site.deployment(DEPLOYMENT.format(use="two:scripted", rounds=4))
            assert (await host.run("hi")).text == "from one"
            module = sys.modules["fake_one"]
            await host.reload()
            assert (await host.run("hi")).text == "from two"
            assert host.plan is not first
            assert host.plan.limits.rounds == 4
            assert host.provenance.model.plugin == "two"
            assert sys.modules["fake_one"] is module

    asyncio.run(main())


def test_req_2_turns_under_way_finish_on_the_plan_they_began_with() -> None:
    """A reload swaps the plan at once; what the old one opened stays open until its last turn has ended."""

    async def main() -> None:
        held = Held()
        host, opens = holding(held, "new")
        async with host:
            under_way = asyncio.create_task(host.run("hi"))
            await held.asked.wait()
            await host.reload()
            await settle()
            assert opens.log == ["open 1", "open 2"]
            assert (await host.run("hi")).text == "new"
            held.go.set()
            assert (await under_way).text == "held"
            await settle()
            assert opens.log == ["open 1", "open 2", "close 1"]
        assert opens.log == ["open 1", "open 2", "close 1", "close 2"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_idle_generation_is_closed_by_the_reload() -> None:
    """Without turns under way nothing keeps the old plan's things open."""

    async def main() -> None:
        host, opens = holding("x")
        async with host:
            for _ in range(3):
                await host.reload()
            await settle()
            assert [line for line in opens.log if line.startswith("close")] == ["close 1", "close 2", "close 3"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "broken", ["[model\n", "[limits]\nrounds = 'x'\n", "[limits]\nrounds = -1\n", '[[plugin]]\nid = "gone"\n']
)
def test_a_failing_reload_keeps_the_old_plan(site: FakeSite, broken: str) -> None:
    """Whatever is wrong with the new file is raised, and turns go on as before."""
    site.plugin("one", model_source("'from one'"))
    good = '[model]\nuse = "one:scripted"\n[[plugin]]\nid = "one"\n'

    async def main() -> None:
        async with Host.from_file(site.deployment(good)) as host:
            old = host.plan
            site.deployment(broken if broken.startswith("[model") else f"{good}{broken}")
            with pytest.raises(SymfonicError):
                await host.reload()
            assert host.plan is old
            assert (await host.run("hi")).text == "from one"

    asyncio.run(main())


def test_two_reloads_at_once_leave_one_plan_open() -> None:
    """However reloads overlap, every generation but the last is closed, and the last one too at the end."""

    async def main() -> None:
        host, opens = holding("x")
        async with host:
            await asyncio.gather(host.reload(), host.reload(), host.reload())
            await settle()
            assert sorted(opens.log) == [
                "close 1",
                *sorted(f"close {n}" for n in (2, 3)),
                "open 1",
                "open 2",
                "open 3",
                "open 4",
            ]
        assert sorted(opens.log)[:4] == ["close 1", "close 2", "close 3", "close 4"]

    asyncio.run(main())


def test_closing_while_a_reload_builds_closes_what_it_built() -> None:
    """The end of the host wins: the reload is told so, and nothing stays open."""

    async def main() -> None:
        opens, go, building = Opens(), asyncio.Event(), asyncio.Event()

        async def build(context: Ctx) -> object:
            if opens.count:
                building.set()
                await go.wait()
            return opens.build(context)

        host = composed(using(Tools("t", build)))
        async with host:
            reloading = asyncio.create_task(host.reload())
            await building.wait()
        go.set()
        with pytest.raises(HostClosed, match="closed while it reloaded"):
            await reloading
        assert opens.log == ["open 1", "close 1", "open 2", "close 2"]
        with pytest.raises(HostClosed):
            _ = host.plan

    asyncio.run(main())


def test_reload_of_a_host_that_is_not_open_is_refused() -> None:
    """Nothing is read or built for it."""
    host, opens = holding("x")
    with pytest.raises(HostClosed):
        asyncio.run(host.reload())
    assert opens.log == []


def test_closing_waits_for_turns_under_way() -> None:
    """The end of ``async with`` takes no new turns and waits for the last one before anything is closed."""

    async def main() -> None:
        held = Held()
        host, opens = holding(held)
        await host.__aenter__()
        under_way = asyncio.create_task(host.run("hi"))
        await held.asked.wait()
        closing = asyncio.create_task(host.__aexit__(None, None, None))
        await settle()
        assert not closing.done()
        assert opens.log == ["open 1"]
        with pytest.raises(HostClosed):
            await host.run("again")
        held.go.set()
        assert (await under_way).text == "held"
        await closing
        assert opens.log == ["open 1", "close 1"]

    asyncio.run(main())


def test_closing_waits_for_turns_of_earlier_generations_too() -> None:
    """A turn that outlived a reload is waited for as well."""

    async def main() -> None:
        held = Held()
        host, opens = holding(held)
        await host.__aenter__()
        under_way = asyncio.create_task(host.run("hi"))
        await held.asked.wait()
        await host.reload()
        closing = asyncio.create_task(host.__aexit__(None, None, None))
        await settle()
        assert not closing.done()
        held.go.set()
        await closing
        assert under_way.done()
        assert sorted(opens.log) == ["close 1", "close 2", "open 1", "open 2"]

    asyncio.run(main())


def test_a_stream_that_is_dropped_does_not_keep_the_host_open() -> None:
    """A consumer that breaks off and forgets the stream has its turn cancelled, and closing does not hang."""

    async def main() -> None:
        held = Held()
        host, opens = holding(held)
        async with host:
            stream = host.stream("hi")
            assert isinstance(await anext(stream), TurnStarted)
            await held.asked.wait()
            del stream
            gc.collect()
        assert opens.log == ["open 1", "close 1"]

    asyncio.run(main())


def test_a_stream_that_is_closed_early_does_not_keep_the_host_open() -> None:
    """``aclose`` cancels the turn and waits until it has settled."""

    async def main() -> None:
        held = Held()
        host, _ = holding(held)
        async with host:
            async with host.stream("hi") as stream:
                await anext(stream)
                await held.asked.wait()
            assert stream.partial.stop_reason == "cancelled"
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    asyncio.run(main())


def test_a_cancelled_turn_does_not_keep_the_host_open() -> None:
    """Cancelling the caller ends its turn, and the generation is let go."""

    async def main() -> None:
        held = Held()
        host, opens = holding(held)
        async with host:
            under_way = asyncio.create_task(host.run("hi"))
            await held.asked.wait()
            under_way.cancel()
            with pytest.raises(asyncio.CancelledError):
                await under_way
        assert opens.log == ["open 1", "close 1"]

    asyncio.run(main())


def test_a_host_is_opened_once_at_a_time() -> None:
    """Opening an open host would lose the plan it has; after its end it may be opened again."""

    async def main() -> None:
        host, opens = holding("x")
        async with host:
            with pytest.raises(HostError, match="open already"):
                await host.__aenter__()
            assert (await host.run("hi")).text == "x"
        async with host:
            assert (await host.run("hi")).text == "x"
        assert opens.log == ["open 1", "close 1", "open 2", "close 2"]

    asyncio.run(main())


def test_what_fails_while_closing_is_logged_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    """The turns were answered: a plugin that cannot close must not turn the end into a crash."""

    @asynccontextmanager
    async def bad() -> AsyncIterator[list[object]]:
        yield []
        raise OSError("cannot close")

    async def main() -> None:
        async with composed(using(Tools("t", lambda context: bad()))) as host:
            assert (await host.run("hi")).text == "hello"

    with caplog.at_level(logging.WARNING, "symfonic.host"):
        asyncio.run(main())
    assert ["closing what a plugin opened raised OSError: cannot close"] == [
        record.getMessage() for record in caplog.records if record.name == "symfonic.host"
    ]


def test_a_start_that_is_cancelled_closes_what_it_opened() -> None:
    """Cancelling ``async with host`` while a factory waits ends the build and leaves nothing running."""

    async def main() -> None:
        opens, waiting = Opens(), asyncio.Event()

        async def never(context: Ctx) -> object:
            waiting.set()
            await asyncio.Event().wait()
            return []

        host = composed(using(Tools("a", opens.build), Tools("b", never)))
        start = asyncio.create_task(host.__aenter__())
        await waiting.wait()
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        await settle()
        assert opens.log == ["open 1", "close 1"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_error_inside_the_host_is_the_callers() -> None:
    """``async with`` swallows nothing, and closes all the same."""
    host, opens = holding("x")

    async def main() -> None:
        async with host:
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(main())
    assert opens.log == ["open 1", "close 1"]


def test_a_generation_that_is_not_open_says_so() -> None:
    """Its plan does not exist before it was built; closing it is nothing."""

    async def main() -> None:
        generation = Generation(Deployment(), [], Code(), Path())
        with pytest.raises(RuntimeError, match="not open"):
            _ = generation.plan
        assert generation.is_closed
        await generation.closed()

    asyncio.run(main())


def test_entering_and_leaving_with_a_plain_with() -> None:
    """For scripts: the same lifetimes on the process's background loop."""
    host, opens = holding("plain")
    with host:
        assert host.run_sync("hi").text == "plain"
        assert opens.log == ["open 1"]
    assert opens.log == ["open 1", "close 1"]


def test_a_failing_start_with_a_plain_with_raises_the_same_error(site: FakeSite) -> None:
    """No other exception for scripts."""
    with pytest.raises(ConfigError, match="model"), Host.from_file(site.deployment("")):
        raise AssertionError


def test_a_turn_of_a_stage_that_waits_is_not_cut_by_the_reload() -> None:
    """A stage under way in an old generation still has what its plugin opened."""

    async def main() -> None:
        opens, inside, go = Opens(), asyncio.Event(), asyncio.Event()

        async def handle(context: object) -> None:
            inside.set()
            await go.wait()
            assert "close 1" not in opens.log

        plugin = using(Tools("t", opens.build), StageHandler("s", lambda context: handle, phase="settle"))
        host = compose(model=ScriptedModel("x", repeat=True), plugins=[plugin])
        async with host:
            under_way = asyncio.create_task(host.run("hi"))
            await inside.wait()
            await host.reload()
            await settle()
            go.set()
            assert (await under_way).text == "x"
            await settle()
            assert "close 1" in opens.log

    asyncio.run(main())


def test_a_problem_of_a_reload_is_told_as_at_start() -> None:
    """A factory that breaks the second time names its plugin."""
    count: list[int] = []

    def build(context: Ctx) -> object:
        count.append(1)
        if len(count) > 1:
            raise RuntimeError("second time")
        return []

    async def main() -> None:
        async with composed(using(Tools("t", build))) as host:
            with pytest.raises(PluginError, match="second time"):
                await host.reload()

    asyncio.run(main())

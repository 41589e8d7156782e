"""The pool of daemon threads for sync handlers and tools (STG-10, TRN-3)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from symfonic.kernel import _workers
from symfonic.kernel._workers import WorkerPool, WorkersExhausted, workers

WAIT_S = 20.0
"""How long a test waits for another thread before it fails; never a proof of anything."""

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture(autouse=True)
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of a test's pool do not outlive it by much."""
    monkeypatch.setattr(_workers, "IDLE_S", 0.5)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """An event that blocked threads wait for; set at the end whatever happens."""
    event = threading.Event()
    yield event
    event.set()


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop and other threads go on until it holds; fails when it never does."""
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110  # threads do not set this loop's events
            await asyncio.sleep(0.001)


class Blocker:
    """A call that tells that it runs and then holds its thread until it is let go."""

    def __init__(self, release: threading.Event) -> None:
        self.entered = threading.Event()
        self.ended = threading.Event()
        self.release = release

    def __call__(self) -> str:
        self.entered.set()
        assert self.release.wait(WAIT_S)
        self.ended.set()
        return "let go"


async def abandon(pool: WorkerPool, blocker: Blocker) -> None:
    """Start a call and stop waiting for it while it blocks its thread."""
    task = asyncio.create_task(pool.run(blocker))
    await until(blocker.entered.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- running --------------------------------------------------------------------------------------------------------


def test_stg_10_a_call_runs_on_a_daemon_thread_of_the_pool() -> None:
    """Never on the loop's own thread, and on a thread that does not hold the process."""
    thread = asyncio.run(WorkerPool().run(threading.current_thread))
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert thread.name == "symfonic-worker-1"


class Own(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), Own()])
def test_stg_10_every_error_reaches_the_waiter(error: BaseException) -> None:
    """The very error that was raised, exits too; the thread lives on."""

    def fail() -> None:
        raise error

    async def main() -> object:
        pool = WorkerPool(size=1)
        caught: BaseException | None = None
        try:
            await pool.run(fail)
        except BaseException as raised:  # noqa: BLE001  # what is tested
            caught = raised
        assert caught is error
        return await pool.run(lambda: "still there")

    assert asyncio.run(main()) == "still there"


def test_stg_10_a_stop_iteration_is_told_as_an_ordinary_error() -> None:
    """Raised in a coroutine it would end it in silence."""

    def fail() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration was raised in a worker thread"):
        asyncio.run(WorkerPool().run(fail))


def test_stg_10_a_cancellation_that_the_call_raises_itself_abandons_nothing() -> None:
    """The call has ended: its thread is free, however its error looks."""

    def fail() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        pool = WorkerPool(size=1)
        with pytest.raises(asyncio.CancelledError):
            await pool.run(fail)
        assert pool.abandoned == 0
        assert await pool.run(lambda: 1) == 1

    asyncio.run(main())


def test_stg_10_the_callers_context_variables_are_seen_and_not_changed() -> None:
    """Each call gets a copy of its caller's context, also on a thread that ran another's."""

    def read_and_set() -> str:
        before = variable.get()
        variable.set("set in the thread")
        return before

    async def turn(pool: WorkerPool, value: str) -> tuple[str, str]:
        variable.set(value)
        return await pool.run(read_and_set), variable.get()

    async def main() -> list[tuple[str, str]]:
        pool = WorkerPool(size=1)
        return [await asyncio.create_task(turn(pool, value)) for value in ("one", "two")]

    assert asyncio.run(main()) == [("one", "one"), ("two", "two")]
    assert variable.get() == "unset"


def test_stg_10_calls_run_at_the_same_time_up_to_the_size() -> None:
    """As many as the size meet at a barrier; one more waits for its turn."""

    async def main() -> None:
        pool = WorkerPool(size=3)
        meet = threading.Barrier(3)
        await asyncio.gather(*(pool.run(lambda: meet.wait(WAIT_S)) for _ in range(3)))

        release = threading.Event()
        blockers = [Blocker(release) for _ in range(4)]
        tasks = [asyncio.create_task(pool.run(blocker)) for blocker in blockers]
        await until(lambda: sum(b.entered.is_set() for b in blockers) == 3)
        assert not blockers[3].entered.is_set()
        assert pool._threads == 3  # noqa: SLF001  # the bound under test
        release.set()
        assert await asyncio.gather(*tasks) == ["let go"] * 4

    asyncio.run(main())


def test_stg_10_an_idle_thread_is_used_again() -> None:
    """Calls one after the other need one thread."""

    async def main() -> set[int]:
        pool = WorkerPool()
        names = set()
        for _ in range(5):
            await until(lambda: pool._threads == pool._idle)  # noqa: SLF001  # the last thread waits again
            names.add(await pool.run(threading.get_ident))
        return names

    assert len(asyncio.run(main())) == 1


def test_stg_10_an_idle_thread_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that is not used holds no thread, and still works afterwards."""
    monkeypatch.setattr(_workers, "IDLE_S", 0.01)

    async def main() -> None:
        pool = WorkerPool()
        thread = await pool.run(threading.current_thread)
        await until(lambda: not thread.is_alive())
        assert (pool._threads, pool._idle) == (0, 0)  # noqa: SLF001  # nothing is left
        assert await pool.run(lambda: "again") == "again"

    asyncio.run(main())


def test_stg_10_a_thread_keeps_nothing_of_its_last_call() -> None:
    """While it waits for the next job, neither the call's result nor its arguments are held."""

    class Thing:
        """Can be watched."""

    async def main() -> weakref.ref[Thing]:
        pool = WorkerPool(size=1)
        watched = weakref.ref(await pool.run(Thing))
        await until(lambda: pool._idle == 1)  # noqa: SLF001  # the thread waits again
        gc.collect()
        return watched

    assert asyncio.run(main())() is None


def test_stg_10_many_calls_from_several_loops_all_come_back() -> None:
    """One pool serves loops on several threads; every result reaches its own loop."""
    pool = WorkerPool(size=4)
    got: dict[int, list[int]] = {}

    def loop(number: int) -> None:
        async def main() -> list[int]:
            return await asyncio.gather(*(pool.run(partial(int.__add__, number * 1000, n)) for n in range(200)))

        got[number] = asyncio.run(main())

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert got == {number: [number * 1000 + n for n in range(200)] for number in range(4)}
    assert pool.abandoned == 0
    assert pool._threads <= 4  # noqa: SLF001  # the bound under test


# -- abandoning -----------------------------------------------------------------------------------------------------


def test_stg_10_who_stops_waiting_abandons_the_call(released: threading.Event) -> None:
    """The wait ends at once, the thread is counted until it ends, and its result is dropped."""
    complaints: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        pool = WorkerPool(size=1)
        blocker = Blocker(released)
        await abandon(pool, blocker)
        assert pool.abandoned == 1
        assert not blocker.ended.is_set()
        released.set()
        await until(lambda: pool.abandoned == 0)
        assert blocker.ended.is_set()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert complaints == []


def test_stg_10_an_abandoned_thread_gives_its_place_to_another(released: threading.Event) -> None:
    """Calls go on although every place is held by an abandoned one; when these end the pool shrinks again."""

    async def main() -> None:
        pool = WorkerPool(size=2)
        blockers = [Blocker(released) for _ in range(4)]
        for blocker in blockers:
            await abandon(pool, blocker)
        assert pool.abandoned == 4
        meet = threading.Barrier(2)
        await asyncio.gather(*(pool.run(lambda: meet.wait(WAIT_S)) for _ in range(2)))
        assert pool._threads == 6  # noqa: SLF001  # two at work beside four abandoned
        released.set()
        await until(lambda: pool.abandoned == 0)
        await until(lambda: pool._threads <= 2)  # noqa: SLF001  # the bound under test
        assert await pool.run(lambda: "works") == "works"

    asyncio.run(main())


def test_stg_10_a_job_that_waits_gets_the_place_of_an_abandoned_one(released: threading.Event) -> None:
    """A queued call does not wait for a thread nobody waits for."""

    async def main() -> str:
        pool = WorkerPool(size=1)
        blocker = Blocker(released)
        holding = asyncio.create_task(pool.run(blocker))
        await until(blocker.entered.is_set)
        waiting = asyncio.create_task(pool.run(lambda: "my turn"))
        await asyncio.sleep(0)
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        return await waiting

    assert asyncio.run(main()) == "my turn"


def test_stg_10_a_call_that_never_started_is_neither_run_nor_counted(released: threading.Event) -> None:
    """Cancelled in the queue it leaves the queue at once: it holds no thread and no memory."""
    ran: list[str] = []

    class Thing:
        """Can be watched."""

        def __call__(self) -> None:
            ran.append("ran")

    async def main() -> None:
        pool = WorkerPool(size=1)
        blocker = Blocker(released)
        holding = asyncio.create_task(pool.run(blocker))
        await until(blocker.entered.is_set)
        thing = Thing()
        watched = weakref.ref(thing)
        waiting = asyncio.create_task(pool.run(thing))
        await asyncio.sleep(0)
        assert len(pool._jobs) == 1  # noqa: SLF001  # it waits
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        del thing, waiting
        gc.collect()
        assert watched() is None
        assert (pool.abandoned, len(pool._jobs)) == (0, 0)  # noqa: SLF001  # nothing is left of it
        released.set()
        assert await holding == "let go"
        assert await pool.run(lambda: 1) == 1

    asyncio.run(main())
    assert ran == []


def test_stg_10_too_many_abandoned_calls_refuse_a_further_one(released: threading.Event) -> None:
    """A process does not fill with blocked threads: above the bound a call is refused, and taken again later."""

    async def main() -> None:
        pool = WorkerPool(size=1, max_abandoned=2)
        for _ in range(2):
            await abandon(pool, Blocker(released))
        with pytest.raises(WorkersExhausted, match="2 abandoned sync calls still block their threads; no further one"):
            await pool.run(lambda: 1)
        assert len(pool._jobs) == 0  # noqa: SLF001  # it was not queued
        released.set()
        await until(lambda: pool.abandoned == 0)
        assert await pool.run(lambda: 1) == 1

    asyncio.run(main())


def test_stg_10_a_loop_that_was_closed_meanwhile_is_nobody_to_tell(released: threading.Event) -> None:
    """The thread of a call whose loop is gone ends its job in peace and serves the next."""
    pool = WorkerPool(size=1)
    blocker = Blocker(released)
    asyncio.run(abandon(pool, blocker))
    released.set()
    assert asyncio.run(pool.run(lambda: "next loop")) == "next loop"
    asyncio.run(until(lambda: pool.abandoned == 0))


# -- no threads to be had -------------------------------------------------------------------------------------------


class NoThread(threading.Thread):
    """The system refuses to start it."""

    def start(self) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)


def test_stg_10_a_system_without_threads_is_told_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one thread of its own the pool refuses; the refused call is not run later."""
    ran: list[str] = []

    async def main() -> None:
        pool = WorkerPool()
        with monkeypatch.context() as patched:
            patched.setattr(_workers.threading, "Thread", NoThread)
            with pytest.raises(WorkersExhausted, match="no worker thread can be started"):
                await pool.run(lambda: ran.append("refused"))
        await pool.run(lambda: ran.append("accepted"))
        assert (pool._threads, len(pool._jobs)) == (1, 0)  # noqa: SLF001  # the count is right

    asyncio.run(main())
    assert ran == ["accepted"]


def test_stg_10_a_job_waits_for_a_thread_there_is_when_no_other_can_be_started(
    monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    """Fewer threads than the size still serve every call."""

    async def main() -> None:
        pool = WorkerPool(size=4)
        blocker = Blocker(released)
        holding = asyncio.create_task(pool.run(blocker))
        await until(blocker.entered.is_set)
        monkeypatch.setattr(_workers.threading, "Thread", NoThread)
        waiting = asyncio.create_task(pool.run(lambda: "after all"))
        await asyncio.sleep(0)
        released.set()
        assert await asyncio.gather(holding, waiting) == ["let go", "after all"]
        assert pool._threads == 1  # noqa: SLF001  # the count is right

    asyncio.run(main())


# -- the process ----------------------------------------------------------------------------------------------------


def test_stg_10_a_process_has_one_pool() -> None:
    """All plans share it, however many threads ask for it first."""
    process = _workers._PerProcess()  # noqa: SLF001  # a fresh one
    meet = threading.Barrier(4)
    got: list[WorkerPool] = []

    def ask() -> None:
        meet.wait(WAIT_S)
        got.append(process.get())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert len({id(pool) for pool in got}) == 1
    assert workers() is workers()


def test_stg_10_a_pool_asked_for_while_another_thread_makes_it_is_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look, with the lock held, finds what was made meanwhile."""
    process = _workers._PerProcess()  # noqa: SLF001  # a fresh one
    made = WorkerPool()

    class Lock:
        def __enter__(self) -> None:
            process._pool, process._pid = made, os.getpid()  # noqa: SLF001  # the other thread was first

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(process, "_lock", Lock())
    assert process.get() is made


def script(text: str, timeout: float = WAIT_S) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(  # noqa: S603  # our own interpreter and script
        [sys.executable, "-c", textwrap.dedent(text)],
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_stg_10_a_forked_child_has_a_pool_of_its_own() -> None:
    """Its parent's threads are gone in the child, which would wait for them for ever."""
    ran = script(
        """
        import asyncio, os, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
        from symfonic.kernel._workers import workers

        assert asyncio.run(workers().run(lambda: "parent")) == "parent"
        parent = workers()
        pid = os.fork()
        if pid == 0:
            ok = workers() is not parent and asyncio.run(workers().run(lambda: "child")) == "child"
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pid, 0)
        assert workers() is parent
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert (ran.stdout.strip(), ran.stderr) == ("0", "")


@pytest.mark.parametrize("how", ["abandoned", "waiting"])
def test_stg_10_a_blocked_worker_does_not_hold_the_process(how: str) -> None:
    """A process whose handler blocks its thread for ever ends when its main thread does."""
    begun = time.monotonic()
    ran = script(
        f"""
        import asyncio, threading
        from symfonic.kernel._workers import workers

        entered = threading.Event()

        def block():
            entered.set()
            threading.Event().wait()

        async def main():
            task = asyncio.create_task(workers().run(block))
            while not entered.is_set():
                await asyncio.sleep(0)
            if {how!r} == "abandoned":
                task.cancel()
                await asyncio.wait([task])
                print(workers().abandoned)
            else:
                print(0)

        asyncio.run(main())
        """
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "1" if how == "abandoned" else "0", "")
    assert time.monotonic() - begun < WAIT_S


def test_stg_10_a_turn_whose_sync_stage_blocks_for_ever_still_ends() -> None:
    """From a script: the stage times out, the turn tells so, and the process exits."""
    ran = script(
        """
        import threading
        from symfonic.kernel.compile import compile_plan
        from symfonic.kernel.request import TurnRequest
        from symfonic.kernel.stages import Stage
        from symfonic.kernel.turn import run_turn_sync
        from symfonic.testing import ScriptedModel

        plan = compile_plan(
            model=ScriptedModel("hello"),
            stages=[Stage("slow", "settle", timeout_s=0.05, on_crash="report")],
            handlers={"slow": lambda _: threading.Event().wait()},
        )
        result = run_turn_sync(plan, TurnRequest("x"))
        print(result.text, "|", result.traces[-1].error)
        """,
        60,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == (
        "hello | timed out after 0.05 s; its thread cannot be cancelled and is abandoned (1 abandoned now)"
    )

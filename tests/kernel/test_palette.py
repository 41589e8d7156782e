"""The palette's values and its projector: names, identity, binding, caching, forcing (PAL-1 to PAL-15, PAL-20)."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TypedDict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, ConfigDict

from symfonic.kernel import palette as palette_module
from symfonic.kernel._lazy import LazyModel
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import PaletteError, PlanRefused, ToolNameError
from symfonic.kernel.forcing import BindRequest, Bound, ForcingSupport
from symfonic.kernel.palette import (
    NOTHING,
    Binding,
    Nothing,
    PaletteProjector,
    ToolPalette,
    is_provider_run,
    palette_identity,
    tool_name,
)
from symfonic.testing import ScriptedModel

WAIT_S = 20.0
"""How long a test waits for another thread before it fails; never a proof of anything."""


class BoundTo:
    """What the fake model's bind gives: a new object each time, so that identity can be told."""

    def __init__(self, tools: tuple[object, ...], tool_choice: str | None) -> None:
        self.tools = tools
        self.tool_choice = tool_choice


class FakeModel:
    """Keeps what was bound to it."""

    def __init__(self) -> None:
        self.bound: list[BoundTo] = []

    def bind_tools(self, tools: Sequence[object], *, tool_choice: str | None = None, **kwargs: object) -> BoundTo:
        assert not kwargs
        assert tools, "bind_tools([]) must never be called"
        self.bound.append(BoundTo(tuple(tools), tool_choice))
        return self.bound[-1]

    @property
    def binds(self) -> list[tuple[tuple[str, ...], str | None]]:
        return [(tuple(tool_name(t) for t in b.tools), b.tool_choice) for b in self.bound]


def spec(name: str) -> dict[str, object]:
    """A tool as OpenAI's dict."""
    return {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}


def specs(names: str) -> list[dict[str, object]]:
    return [spec(name) for name in names]


def make(names: str = "cab", **options: object) -> tuple[PaletteProjector, FakeModel, object]:
    """A projector over tools named by single letters, its model, and what was bound before."""
    model, bound = FakeModel(), object()
    return PaletteProjector(model, specs(names), bound, **options), model, bound  # type: ignore[arg-type]  # test options


# -- PAL-1, PAL-2 ---------------------------------------------------------------------------------------------------


def test_pal_1_tools_are_a_tuple_in_plan_order() -> None:
    """The palette is kept as a tuple in the order it came, from any iterable."""
    given_tools = specs("cab")
    projector = PaletteProjector(FakeModel(), (t for t in given_tools), object())
    assert isinstance(projector.tools, tuple)
    assert [tool_name(t) for t in projector.tools] == ["c", "a", "b"]
    assert all(kept is t for kept, t in zip(projector.tools, given_tools, strict=True))
    assert projector.names == {"a", "b", "c"}


@pytest.mark.parametrize("none", [None, (), [], iter(())])
def test_pal_1_no_tools_is_an_empty_palette(none: object) -> None:
    """None and any empty iterable are a palette without tools, whose only binding is the plan's own."""
    bound = object()
    projector = PaletteProjector(FakeModel(), none, bound)  # type: ignore[arg-type]  # what is tested
    assert projector.tools == ()
    assert projector.bind(None) is bound
    assert projector.bind(frozenset("a")) is bound
    with pytest.raises(PaletteError, match="cannot force 'a', it is not offered; valid: none"):
        projector.bind(None, "a")


def test_pal_1_the_plans_own_binding_may_bind_on_first_use_and_keeps_its_identity() -> None:
    """A plan binds the full palette lazily: nothing is bound at compile, and the object handed out never changes."""
    model = ScriptedModel("hello", repeat=True)
    plan = compile_plan(model=model, tools=specs("ab"))
    assert plan.bindings.palette is not None
    full = plan.bindings.palette.bind(None)
    assert full is plan.bindings.model
    assert model.binds == []
    assert isinstance(full, LazyModel)
    inner = full.bound
    assert model.binds == [(("a", "b"), None)]
    assert full.bound is inner
    assert plan.bindings.palette.bind(None) is full


def test_pal_1_a_lazy_model_raced_for_is_bound_once() -> None:
    """Threads that first call the full palette at the same time share one binding."""
    entered, release, made = threading.Event(), threading.Event(), []

    def bind() -> Bound:
        entered.set()
        assert release.wait(WAIT_S)
        made.append(object())
        return Bound(made[-1])

    lazy = LazyModel(bind)
    got: list[object] = []
    racing = [threading.Thread(target=lambda: got.append(lazy.bound)) for _ in range(4)]
    racing[0].start()
    assert entered.wait(WAIT_S)
    for thread in racing[1:]:
        thread.start()
    release.set()
    for thread in racing:
        thread.join(WAIT_S)
    assert len(made) == 1
    assert got == made * 4


def test_pal_1_a_lazy_model_whose_bind_failed_tries_again() -> None:
    """A failed bind of the full palette is not kept: the next call binds again."""
    answers: list[object] = [RuntimeError("down"), "model"]

    def bind() -> Bound:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Bound(answer)

    lazy = LazyModel(bind)
    with pytest.raises(RuntimeError, match="down"):
        lazy.bound  # noqa: B018  # binds
    assert lazy.bound == "model"


def test_pal_2_bind_is_the_model_of_binding() -> None:
    """``bind`` gives the model, ``binding`` the whole: identity, offered in order, force, reason, fresh."""
    projector, model, _ = make("cab")
    first = projector.binding(frozenset("bc"))
    assert first == Binding(model.bound[0], "b\x00c", ("c", "b"), None, None)
    assert first.model is model.bound[0]
    assert first.fresh
    again = projector.binding(frozenset("bc"))
    assert not again.fresh
    assert projector.bind(frozenset("bc")) is again.model is first.model
    assert [field.name for field in attrs.fields(Binding)] == [
        "model",
        "identity",
        "offered",
        "forced",
        "reason",
        "fresh",
    ]


# -- PAL-3, PAL-5 ---------------------------------------------------------------------------------------------------


def test_pal_3_full_palette_is_the_plans_own_binding() -> None:
    """None without a force is the very object given as ``bound``, and nothing is bound again."""
    projector, model, bound = make()
    for _ in range(3):
        binding = projector.binding(None)
        assert binding.model is bound
        assert (binding.identity, binding.offered, binding.forced) == ("*", ("c", "a", "b"), None)
        assert not binding.fresh
    assert model.bound == []


@pytest.mark.parametrize("names", [frozenset("abc"), frozenset("abcz")])
def test_pal_3_a_selection_that_covers_the_palette_is_the_full_palette(names: frozenset[str]) -> None:
    """Naming every tool, with or without strangers, is no narrowing."""
    projector, model, bound = make()
    assert projector.binding(names) == projector.binding(None)
    assert projector.bind(names) is bound
    assert model.bound == []


@pytest.mark.parametrize("names", [frozenset(), frozenset("z"), frozenset({"x", "y"})])
def test_pal_5_a_selection_that_matches_nothing_is_the_plans_own_binding(names: frozenset[str]) -> None:
    """Empty or only unknown names: the router has said nothing, so the palette is not taken away."""
    projector, model, bound = make()
    binding = projector.binding(names)
    assert binding.model is bound
    assert binding.identity == "*"
    assert binding.offered == ("c", "a", "b")
    assert model.bound == []


# -- PAL-4, PAL-11, PAL-8 -------------------------------------------------------------------------------------------


def test_pal_4_one_subset_is_bound_once_in_any_order() -> None:
    """The same names in any order are one binding; names outside the palette leave before the identity is taken."""
    projector, model, _ = make("abcd")
    first = projector.bind(frozenset(["a", "b"]))
    assert projector.bind(frozenset(["b", "a"])) is first
    assert projector.bind(frozenset(["b", "a", "unknown"])) is first
    assert projector.binding(frozenset(["a", "b", "unknown"])).identity == palette_identity(frozenset("ab"))
    assert len(model.bound) == 1


def test_pal_11_the_selected_tools_go_out_in_plan_order() -> None:
    """Whatever the selection's order, the provider gets plan order, narrowed or forced."""
    projector, model, _ = make("dbca")
    for names in itertools.permutations("abc"):
        projector.bind(frozenset(names))
    projector.bind(frozenset("cab"), "c")
    projector.bind(None, "a")
    assert model.binds == [(("b", "c", "a"), None), (("b", "c", "a"), "c"), (("d", "b", "c", "a"), "a")]


def test_pal_8_wrap_sees_every_fresh_binding_once_and_never_bound() -> None:
    """``wrap`` shapes what was freshly bound, once, and the plan's own binding goes round it."""
    seen: list[object] = []

    def wrap(model: object) -> object:
        seen.append(model)
        return ("wrapped", model)

    projector, model, bound = make("abc", wrap=wrap)
    assert projector.bind(None) is bound
    assert projector.bind(frozenset("abc")) is bound
    first = projector.bind(frozenset("a"))
    assert first == ("wrapped", model.bound[0])
    assert projector.bind(frozenset("a")) is first
    projector.bind(frozenset("a"), "a")
    projector.bind(NOTHING)
    assert seen == [*model.bound, model]
    assert bound not in seen


# -- PAL-6, PAL-7 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [None, frozenset(), frozenset("z"), frozenset("abc")])
def test_pal_6_a_force_without_a_matching_selection_binds_the_full_palette(names: frozenset[str] | None) -> None:
    """Forcing says which call must happen, not which calls exist."""
    projector, model, bound = make("cab")
    binding = projector.binding(names, "a")
    assert binding.model is not bound
    assert binding.offered == ("c", "a", "b")
    assert binding.forced == "a"
    assert binding.identity == "*\x01!a"
    assert model.binds == [(("c", "a", "b"), "a")]


@pytest.mark.parametrize(
    ("names", "forced", "valid"),
    [
        (None, "z", "a, b, c"),
        (frozenset(), "z", "a, b, c"),
        (frozenset("ab"), "c", "a, b"),
        (frozenset("ab"), "z", "a, b"),
        (None, "", "a, b, c"),
        (NOTHING, "a", "none"),
    ],
)
def test_pal_6_a_force_that_is_not_offered_is_refused(
    names: frozenset[str] | Nothing | None, forced: str, valid: str
) -> None:
    """A force outside the palette, outside a matching selection or beside NOTHING raises and binds nothing."""
    projector, model, _ = make()
    with pytest.raises(PaletteError) as caught:
        projector.binding(names, forced)  # type: ignore[arg-type]  # NOTHING's type
    assert str(caught.value) == f"cannot force {forced!r}, it is not offered; valid: {valid}"
    assert model.bound == []


def test_pal_7_the_force_is_part_of_the_identity() -> None:
    """The same tools with and without a force, and under two forces, are three bindings that never share one."""
    projector, model, _ = make()
    free, by_a, by_b = (projector.binding(frozenset("ab"), forced) for forced in (None, "a", "b"))
    assert len({id(b.model) for b in (free, by_a, by_b)}) == 3
    assert len({b.identity for b in (free, by_a, by_b)}) == 3
    assert [choice for _, choice in model.binds] == [None, "a", "b"]
    assert projector.bind(frozenset("ab")) is free.model
    assert projector.bind(frozenset("ab"), "b") is by_b.model


# -- PAL-9 ----------------------------------------------------------------------------------------------------------

Answer = Callable[[object, Sequence[object], str | None], object]


def test_pal_9_bind_with_gets_model_selected_tools_and_force() -> None:
    """The provider-shaped binder gets the unbound model, the selected tool objects in plan order, and the force."""
    asked: list[tuple[object, list[object], str | None]] = []

    def binder(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, str | None]:
        asked.append((model, list(tools), forced))
        return object(), None

    projector, model, _ = make("cab", bind_with=binder)
    projector.bind(frozenset("bc"), "b")
    projector.bind(NOTHING)
    c, _a, b = projector.tools
    assert asked == [(model, [c, b], "b"), (model, [], None)]
    assert model.bound == []


@pytest.mark.parametrize(
    ("answer", "forced", "wanted"),
    [
        (("m", None), "a", ("m", ("a", "b"), "a", None)),
        (("m", "narrow"), "a", ("m", ("a", "b"), "a", "narrow")),
        (("m", None), None, ("m", ("a", "b"), None, None)),
        (Bound("m", ("a",), True, None), "a", ("m", ("a",), "a", None)),
        (Bound("m", ["a"], False, "dropped"), "a", ("m", ("a",), None, "dropped")),  # type: ignore[arg-type]  # converted
        (Bound("m", (), True), None, ("m", (), None, None)),
    ],
)
def test_pal_9_a_binder_answers_with_a_pair_or_a_bound(
    answer: object, forced: str | None, wanted: tuple[object, ...]
) -> None:
    """A pair means that what was given was offered and the force sent; a Bound says what was offered and sent."""
    projector, _, _ = make("abc", bind_with=lambda *_: answer)
    binding = projector.binding(frozenset("ab"), forced)
    assert (binding.model, binding.offered, binding.forced, binding.reason) == wanted


def test_pal_9_the_default_binds_tools_with_the_forced_choice() -> None:
    """Without ``bind_with`` it is LangChain's ``bind_tools``, with ``tool_choice`` only under force."""
    calls: list[dict[str, object]] = []

    class Model:
        def bind_tools(self, tools: Sequence[object], **kwargs: object) -> object:
            calls.append({"tools": [tool_name(t) for t in tools], **kwargs})
            return object()

    projector = PaletteProjector(Model(), specs("abc"), object())
    projector.bind(frozenset("a"))
    projector.bind(frozenset("a"), "a")
    assert calls == [{"tools": ["a"]}, {"tools": ["a"], "tool_choice": "a"}]


def test_pal_9_the_values_of_the_seam() -> None:
    """ForcingSupport, Bound and BindRequest are frozen values with the contract's fields and defaults."""
    support = ForcingSupport("honoured")
    assert (support.answer, support.scope, support.form, support.effect, support.reason) == (
        "honoured",
        "named",
        "name",
        "silent",
        "",
    )
    assert (Bound("m").offered, Bound("m").forced_sent, Bound("m").reason) == ((), False, None)
    request = BindRequest("m", ("a", "b"), ("a",))
    assert (request.model, request.palette, request.selected, request.forced) == ("m", ("a", "b"), ("a",), None)
    for value in (support, Bound("m"), request):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            value.model = "other"  # type: ignore[union-attr]  # what is tested


def test_pal_9_compile_binds_once_converted_schemas() -> None:
    """A plan converts each tool once: the same schema object goes to the provider in every binding."""
    got: list[list[object]] = []

    class Model(ScriptedModel):
        def bind_tools(self, tools: Sequence[object], **kwargs: object) -> object:  # type: ignore[override]  # a fake
            got.append(list(tools))
            return super().bind_tools(tools, **kwargs)  # type: ignore[arg-type]  # a fake

    def alpha(x: int) -> int:
        """Give x."""
        return x

    plan = compile_plan(model=Model("x"), tools=[alpha, spec("b"), spec("c")])
    projector = plan.bindings.palette
    assert projector is not None
    projector.bind(frozenset({"alpha"}))
    projector.bind(frozenset({"alpha", "b"}))
    assert got[0][0] is got[1][0]
    assert got[0][0]["function"]["name"] == "alpha"  # type: ignore[index]  # OpenAI's form


# -- PAL-10 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("support", "sent", "reason"),
    [
        (None, "a", None),
        (ForcingSupport("honoured"), "a", None),
        (ForcingSupport("honoured", scope="any_only"), "a", None),
        (ForcingSupport("honoured", scope="single_only"), "a", None),
        (ForcingSupport("unknown", scope="any_only"), "a", None),
        (ForcingSupport("unknown"), "a", "the force of 'a' is sent and not known to be honoured"),
        (
            ForcingSupport("unknown", reason="new model"),
            "a",
            "the force of 'a' is sent and not known to be honoured: new model",
        ),
        (ForcingSupport("refused"), None, "the force of 'a' is not sent, the provider's answer is refused"),
        (
            ForcingSupport("ignored", reason="thinking"),
            None,
            "the force of 'a' is not sent, the provider's answer is ignored: thinking",
        ),
        (
            ForcingSupport("honoured", scope="none"),
            None,
            "the force of 'a' is not sent, the provider's answer is honoured",
        ),
        (ForcingSupport("refused", scope="named"), "a", None),
    ],
)
def test_pal_10_the_forcing_answer_decides_what_is_sent(
    support: ForcingSupport | None, sent: str | None, reason: str | None
) -> None:
    """Scope none sends no force and says so; unknown and named is sent with a reason; all else is left to the binder."""
    projector, model, _ = make("abc", forcing=support)
    binding = projector.binding(frozenset("ab"), "a")
    assert model.binds == [(("a", "b"), sent)]
    assert (binding.forced, binding.reason) == (sent, reason)
    assert binding.identity == palette_identity(frozenset("ab"), "a")
    assert projector.binding(frozenset("ab")).reason is None


def test_pal_10_the_kernels_reason_is_added_to_the_binders() -> None:
    """Both reasons are told, and a force that was not sent is not taken for sent, whatever the binder says."""
    projector, _, _ = make(
        "abc", forcing=ForcingSupport("refused"), bind_with=lambda *_: Bound("m", "a", True, "also this")
    )
    binding = projector.binding(frozenset("a"), "a")
    assert binding.forced is None
    assert binding.reason == "also this; the force of 'a' is not sent, the provider's answer is refused"


@pytest.mark.parametrize("answer", ["refused", "ignored"])
def test_pal_10_a_refused_or_ignored_answer_has_scope_none_unless_it_says_otherwise(answer: str) -> None:
    """The default scope follows the answer."""
    assert ForcingSupport(answer).scope == "none"
    assert ForcingSupport(answer, scope="any_only").scope == "any_only"
    assert ForcingSupport("unknown").scope == "named"


# -- PAL-12 and the cache against a model ---------------------------------------------------------------------------


def test_pal_12_the_cache_drops_the_least_recently_used() -> None:
    """At most ``cache_size`` bindings beside ``bound``, least recently used out first; a hit counts as use."""
    projector, model, bound = make("abcd", cache_size=2)
    a, b = projector.bind(frozenset("a")), projector.bind(frozenset("b"))
    assert projector.bind(frozenset("a")) is a
    projector.bind(frozenset("c"))  # b, the least recently used, leaves
    assert projector.bind(frozenset("a")) is a
    assert projector.bind(frozenset("b")) is not b
    assert projector.bind(None) is bound
    assert [names for names, _ in model.binds] == [("a",), ("b",), ("c",), ("b",)]


def test_pal_12_what_left_the_cache_is_freed() -> None:
    """A million subsets keep flat memory: a binding that left the cache is held by nobody."""

    class Model:
        def bind_tools(self, tools: Sequence[object], **_: object) -> BoundTo:
            return BoundTo(tuple(tools), None)

    projector = PaletteProjector(Model(), specs("abcdefgh"), object(), cache_size=3)
    made = [weakref.ref(projector.bind(frozenset(pair))) for pair in itertools.combinations("abcdefgh", 2)]
    gc.collect()
    assert sum(ref() is not None for ref in made) == 3


def test_pal_12_a_cache_of_none_binds_each_time() -> None:
    """``cache_size`` 0 keeps nothing and still works."""
    projector, model, bound = make("abc", cache_size=0)
    assert projector.bind(frozenset("a")) is not projector.bind(frozenset("a"))
    assert projector.bind(None) is bound
    assert len(model.bound) == 2


@pytest.mark.parametrize("size", [-1, 2.5, True, None, "9"])
def test_pal_12_a_cache_size_that_is_no_number_is_refused_at_compile(size: object) -> None:
    """A negative cache would fail in the middle of a turn; compile refuses it."""
    with pytest.raises(PlanRefused, match="cache_size is"):
        compile_plan(model=ScriptedModel("x"), cache_size=size)  # type: ignore[arg-type]  # what is tested


Ask = tuple[frozenset[str] | Nothing | None, str | None]
_names = st.one_of(st.none(), st.just(NOTHING), st.frozensets(st.sampled_from("abcdez"), max_size=5))
_asks = st.lists(st.tuples(_names, st.sampled_from([None, None, "a", "b", "z"])), max_size=40)


@settings(deadline=None, max_examples=150)
@given(asks=_asks, size=st.integers(0, 4))
def test_pal_4_pal_12_the_cache_behaves_as_a_plain_lru(asks: list[Ask], size: int) -> None:
    """Against a model that is an ordered dict: the same binds in the same order, the same hits, the same refusals."""
    palette = "cabde"
    projector, model, bound = make(palette, cache_size=size)
    expected: OrderedDict[tuple[object, str | None], object] = OrderedDict()
    for names, forced in asks:
        if isinstance(names, frozenset):
            known = names & set(palette)
            effective: object = None if not known or known == set(palette) else known
        else:
            effective = names
        offered = () if effective is NOTHING else [n for n in palette if effective is None or n in effective]  # type: ignore[operator]  # a set here
        if forced is not None and forced not in offered:
            with pytest.raises(PaletteError):
                projector.binding(names, forced)  # type: ignore[arg-type]  # NOTHING's type
            continue
        binding = projector.binding(names, forced)  # type: ignore[arg-type]  # NOTHING's type
        assert binding.offered == tuple(offered)
        assert binding.identity == palette_identity(effective, forced)  # type: ignore[arg-type]  # as above
        key = (effective, forced)
        if key == (None, None):
            assert binding.model is bound
        elif key in expected:
            assert binding.model is expected[key]
            assert not binding.fresh
            expected.move_to_end(key)
        else:
            assert binding.fresh
            expected[key] = binding.model
            while len(expected) > size:
                expected.popitem(last=False)
    held = projector._cache  # noqa: SLF001  # the bound of the memory is the rule under test
    assert list(held) == list(expected)


class Gate:
    """A binder that waits until the test lets it go."""

    def __init__(self, outcome: object) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.calls = 0
        self.outcome = outcome

    def __call__(self, model: object, tools: Sequence[object], forced: str | None) -> tuple[object, str | None]:
        self.calls += 1
        self.entered.set()
        assert self.release.wait(WAIT_S)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome, None


def _race(projector: PaletteProjector, gate: Gate, racers: int = 6) -> list[object]:
    """All threads ask for one subset while the first is still binding it; what each got, or the error it saw."""
    got: list[object] = []
    waiting = threading.Semaphore(0)
    lock = projector._lock  # noqa: SLF001  # to know that every racer has passed the look-up

    class Counting:
        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            waiting.release()

    projector._lock = Counting()  # type: ignore[assignment]  # noqa: SLF001  # as above

    def ask() -> None:
        try:
            got.append(projector.binding(frozenset("a")))
        except BaseException as error:  # noqa: BLE001  # kept for the test
            got.append(error)

    threads = [threading.Thread(target=ask) for _ in range(racers)]
    threads[0].start()
    assert gate.entered.wait(WAIT_S)
    for thread in threads[1:]:
        thread.start()
    for _ in range(racers):
        assert waiting.acquire(timeout=WAIT_S)
    gate.release.set()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    return got


def test_pal_12_a_subset_raced_for_is_bound_once() -> None:
    """Threads that ask for one subset while it is being bound wait for that one binding."""
    gate = Gate("the model")
    projector, _, _ = make("abc", bind_with=gate)
    got = _race(projector, gate)
    assert gate.calls == 1
    assert len(got) == 6
    assert {b.model for b in got} == {"the model"}  # type: ignore[attr-defined]  # bindings, or the test fails
    assert sum(b.fresh for b in got) == 1  # type: ignore[attr-defined]  # as above


@pytest.mark.parametrize("error", [RuntimeError("no net"), KeyboardInterrupt()])
def test_pal_12_a_bind_that_raises_raises_for_every_waiter_and_is_not_cached(error: BaseException) -> None:
    """Nobody waits for ever for a bind that failed, an interrupt included, and the next ask binds again."""
    gate = Gate(error)
    projector, _, _ = make("abc", bind_with=gate)
    got = _race(projector, gate)
    assert [type(g) for g in got] == [type(error)] * 6
    assert gate.calls == 1
    gate.outcome = "now"
    assert projector.binding(frozenset("a")).model == "now"
    assert gate.calls == 2


def test_pal_12_two_subsets_are_bound_at_the_same_time() -> None:
    """A slow bind of one subset holds up neither another subset nor the full palette."""
    meet = threading.Barrier(2)

    def binder(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, str | None]:
        meet.wait(WAIT_S)  # passes only when both bind at once
        return [tool_name(t) for t in tools], None

    projector, _, bound = make("abc", bind_with=binder)
    got: list[object] = []
    threads = [threading.Thread(target=lambda n=n: got.append(projector.bind(frozenset(n)))) for n in "ab"]
    threads[0].start()
    assert projector.bind(None) is bound
    threads[1].start()
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(got) == [["a"], ["b"]]  # type: ignore[type-var]  # lists of names


# -- PAL-13 ---------------------------------------------------------------------------------------------------------


@tool
def decorated(x: int) -> int:
    """Give x."""
    return x


def plain_function(x: int) -> int:
    """Give x."""
    return x


class PydanticTool(BaseModel):
    """A schema only."""

    x: int


class TitledTool(BaseModel):
    """A schema that is sent by its title."""

    model_config = ConfigDict(title="by_title")
    x: int


class Typed(TypedDict):
    """A schema only."""

    x: int


SHAPES: list[tuple[object, str, str]] = [
    (decorated, "decorated", "here"),
    (plain_function, "plain_function", "here"),
    (StructuredTool.from_function(plain_function, name="renamed"), "renamed", "here"),
    (PydanticTool, "PydanticTool", "caller"),
    (TitledTool, "by_title", "caller"),
    (Typed, "Typed", "caller"),
    (spec("openai"), "openai", "caller"),
    (
        {"type": "function", "name": "responses", "parameters": {"type": "object", "properties": {}}},
        "responses",
        "caller",
    ),
    (
        {"name": "anthropic", "description": "d", "input_schema": {"type": "object", "properties": {}}},
        "anthropic",
        "caller",
    ),
    (
        {"type": "custom", "name": "anthropic2", "input_schema": {"type": "object", "properties": {}}},
        "anthropic2",
        "caller",
    ),
    ({"title": "json_schema", "type": "object", "properties": {"x": {"type": "integer"}}}, "json_schema", "caller"),
    ({"toolSpec": {"name": "bedrock", "inputSchema": {"json": {}}}}, "bedrock", "caller"),
    ({"type": "web_search"}, "web_search", "provider"),
    ({"type": "web_search_20250305", "name": "search", "max_uses": 3}, "search", "provider"),
    ({"google_search": {}}, "google_search", "provider"),
    (MappingProxyType({"type": "web_search"}), "web_search", "provider"),
]


@pytest.mark.parametrize(("given_tool", "name", "runs"), SHAPES, ids=[name for _, name, _ in SHAPES])
def test_pal_13_every_shape_has_one_name_and_one_runner(given_tool: object, name: str, runs: str) -> None:
    """A tool's name is the same in ``tool_name``, the palette, the plan, the wire schema and a binding."""
    plan = compile_plan(model=ScriptedModel("x"), tools=[given_tool, spec("other")])
    projector = plan.bindings.palette
    assert projector is not None
    assert tool_name(given_tool) == name
    assert plan.tool_names == (name, "other")
    assert projector.binding(None).offered == (name, "other")
    planned = plan.bindings.toolset.by_name[name]
    assert str(planned.runs) == runs
    assert is_provider_run(given_tool) is (runs == "provider")
    assert (name in projector.provider_run) is (runs == "provider")
    assert tool_name(planned.schema) == name


@pytest.mark.parametrize(
    "nameless",
    [
        {},
        {"type": "function"},
        {"type": "custom"},
        {"type": ["a"]},
        {"type": 3, "x": 1},
        {1: {}},
        {"function": {"description": "no name"}, "type": "function"},
        {"type": "function", "function": {"name": 5}},
        object(),
        "search",
        7,
        None,
        type("Odd", (), {"name": 5})(),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_pal_13_a_tool_without_a_name_is_refused_and_shown_without_its_values(nameless: object) -> None:
    """What has no name is refused with what was got and the way out, at compile as one finding."""
    with pytest.raises(PaletteError, match="no name can be found for the tool .*; give it a name"):
        tool_name(nameless)
    assert is_provider_run(nameless) in (False, True)
    with pytest.raises(PlanRefused) as caught:
        compile_plan(model=ScriptedModel("x"), tools=[nameless])
    assert any(isinstance(e, ToolNameError) and str(e).startswith("tool 1: no name") for e in caught.value.exceptions)


def test_pal_13_a_custom_tool_of_openais_chat_form_has_its_inner_name() -> None:
    """A free-text tool nested under ``custom`` is named by what is inside, and the caller runs it."""
    grammar = {"type": "custom", "custom": {"name": "grammar"}}
    assert tool_name(grammar) == "grammar"
    assert not is_provider_run(grammar)


def test_pal_13_a_dict_without_a_text_type_is_not_provider_run() -> None:
    """Only a text ``type`` says that a provider knows the tool."""
    assert not is_provider_run({"type": ["x"], "name": "n"})
    assert not is_provider_run({"type": None, "name": "n"})
    assert not is_provider_run({"name": "n", "description": "d"})
    assert tool_name({"type": ["x"], "name": "n"}) == "n"


# -- PAL-14 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "forced", "identity"),
    [
        (None, None, "*"),
        (None, "a", "*\x01!a"),
        (NOTHING, None, "\x02"),
        (frozenset("b"), None, "b"),
        (frozenset("cab"), None, "a\x00b\x00c"),
        (frozenset("ba"), "b", "a\x00b\x01!b"),
    ],
)
def test_pal_14_identity_is_spelt_as_the_contract_has_it(names: object, forced: str | None, identity: str) -> None:
    """Sorted names joined by NUL, ``*`` for all, a force appended, STX for nothing."""
    assert palette_identity(names, forced) == identity  # type: ignore[arg-type]  # parametrized


_tool_names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6).filter(
    lambda name: bool(name.strip()) and name != "*"
)
_palettes = st.one_of(st.none(), st.just(NOTHING), st.frozensets(_tool_names, min_size=1, max_size=4))
_forces = st.one_of(st.none(), _tool_names)


@settings(deadline=None)
@given(one=st.tuples(_palettes, _forces), other=st.tuples(_palettes, _forces))
def test_pal_14_no_two_palettes_share_an_identity(one: Ask, other: Ask) -> None:
    """For names that compile lets through, identities are equal exactly when selection and force are."""
    assert (palette_identity(*one) == palette_identity(*other)) == (one == other)


@settings(deadline=None)
@given(names=st.lists(_tool_names, max_size=6), forced=_forces)
def test_pal_14_identity_does_not_depend_on_order_or_repetition(names: list[str], forced: str | None) -> None:
    """The same names in any order, however often, are one identity."""
    again = frozenset(reversed(names + names[:2]))
    assert palette_identity(frozenset(names), forced) == palette_identity(again, forced)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        (" \t", "is empty"),
        ("*", "means the whole palette"),
        ("a\x00b", "holds a control character"),
        ("a\x01", "holds a control character"),
        ("\x02", "holds a control character"),
        ("line\nbreak", "holds a control character"),
        ("\x7f", "holds a control character"),
        ("\ud800", "holds a control character or a lone surrogate"),
        ("any", "is a word providers read"),
        ("auto", "is a word providers read"),
        ("none", "is a word providers read"),
        ("required", "is a word providers read"),
        ("Required", "is a word providers read"),
    ],
)
def test_pal_14_names_that_collide_or_lose_a_force_are_refused_at_compile(name: str, why: str) -> None:
    """Empty names, ``*``, control characters and words of tool choice are refused, with a hint to alias."""
    with pytest.raises(PlanRefused) as caught:
        compile_plan(model=ScriptedModel("x"), tools=[spec("good"), spec(name)])
    (problem,) = caught.value.exceptions
    assert isinstance(problem, ToolNameError)
    assert why in str(problem)
    assert "alias" in str(problem)
    assert problem.subjects == (name,)


def test_pal_14_duplicates_and_names_a_provider_makes_equal_are_refused_at_compile() -> None:
    """Two tools of one name, and two that become one where a provider normalises, are each one finding that names them."""
    with pytest.raises(PlanRefused) as caught:
        compile_plan(model=ScriptedModel("x"), tools=[spec(n) for n in ("dup", "a.b", "ok", "dup", "a_b", "dup")])
    texts = sorted(str(problem) for problem in caught.value.exceptions)
    assert texts == [
        "3 tools are named 'dup'; alias all but one",
        "tools 'a.b', 'a_b' become one name at providers that take only letters, digits, _ and -; alias all but one",
    ]


def test_pal_13_what_nobody_can_call_is_refused_at_compile() -> None:
    """An object that has a name and is neither a dict nor callable is no tool."""
    odd = type("Odd", (), {"name": "odd"})()
    with pytest.raises(PlanRefused, match="tool 'odd' is a Odd, which nobody can call"):
        compile_plan(model=ScriptedModel("x"), tools=[odd])


# -- PAL-15, PAL-20 -------------------------------------------------------------------------------------------------


def test_pal_15_a_palette_that_fits_passes() -> None:
    """Names, force and finders inside the plan's tools are accepted, from any iterable of names."""
    for fits in (
        ToolPalette(),
        ToolPalette(frozenset("ab"), "a", frozenset("b")),
        ToolPalette(["a", "b"], reveal_by="a"),  # type: ignore[arg-type]  # converted
        ToolPalette(forced="c"),
        ToolPalette(frozenset(), "a"),
        ToolPalette.nothing(),
    ):
        fits.check(iter("abc"))
    assert ToolPalette("a").names == {"a"}  # type: ignore[arg-type]  # converted
    assert ToolPalette(["a", "b"], reveal_by="fin").reveal_by == {"fin"}  # type: ignore[arg-type]  # converted
    assert (ToolPalette().names, ToolPalette().forced, ToolPalette().reveal_by) == (None, None, frozenset())


@pytest.mark.parametrize(
    ("palette", "text"),
    [
        (
            ToolPalette(frozenset("azy")),
            "a palette names tools the plan does not have: y, z; valid: a, b, c",
        ),
        (
            ToolPalette(frozenset("a"), reveal_by=frozenset("fg")),
            "a palette names finder tools the plan does not have: f, g; valid: a, b, c",
        ),
        (ToolPalette(forced="z"), "a palette forces 'z', which the plan does not have; valid: a, b, c"),
        (ToolPalette(frozenset("ab"), "c"), "a palette forces 'c', which it does not offer; valid: a, b"),
        (
            ToolPalette(NOTHING, "a"),
            "a palette forces 'a' and offers nothing; offer the tool or drop the force; valid: a, b, c",
        ),
    ],
)
def test_pal_15_check_names_the_offending_and_the_valid_tools(palette: ToolPalette, text: str) -> None:
    """What cannot be offered or forced raises a PaletteError, which is a ValueError, with both lists."""
    with pytest.raises(PaletteError) as caught:
        palette.check("abc")
    assert str(caught.value) == text
    assert isinstance(caught.value, ValueError)


def test_pal_15_check_against_no_tools_says_none() -> None:
    """A plan without tools has no valid name to show."""
    with pytest.raises(PaletteError, match="valid: none"):
        ToolPalette(frozenset("a")).check(())


def test_pal_15_a_palette_is_frozen() -> None:
    """What a turn resolved cannot be changed afterwards."""
    palette = ToolPalette(frozenset("a"))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        palette.names = None  # type: ignore[misc]  # what is tested
    assert palette == ToolPalette(["a"])  # type: ignore[arg-type]  # converted
    assert hash(palette) == hash(ToolPalette(["a"]))  # type: ignore[arg-type]  # converted


def test_pal_20_nothing_is_a_value_of_its_own() -> None:
    """NOTHING is unequal to an empty frozenset, is one object, and shows itself as it is imported."""
    assert ToolPalette.nothing().names is NOTHING
    assert NOTHING != frozenset()
    assert ToolPalette.nothing() != ToolPalette(frozenset())
    assert isinstance(NOTHING, Nothing)
    assert repr(NOTHING) == "NOTHING"
    assert palette_module.NOTHING is NOTHING


def test_pal_20_nothing_goes_through_the_binder_and_offers_nothing() -> None:
    """The binder is asked with no tools, so that a provider may keep tools bound with choice none."""
    asked: list[list[object]] = []

    def binder(model: object, tools: Sequence[object], forced: str | None) -> Bound:
        asked.append(list(tools))
        return Bound("kept", (), False, "tools stay bound with choice none")

    projector, _, _ = make("abc", bind_with=binder)
    binding = projector.binding(NOTHING)
    assert asked == [[]]
    assert (binding.model, binding.identity, binding.offered) == ("kept", "\x02", ())
    assert binding.reason == "tools stay bound with choice none"
    assert projector.bind(NOTHING) == "kept"
    assert asked == [[]]


def test_pal_20_the_default_binder_gives_the_model_itself_for_nothing() -> None:
    """No tools is the unbound model, never ``bind_tools([])``."""
    projector, model, _ = make("abc")
    assert projector.bind(NOTHING) is model
    assert model.bound == []

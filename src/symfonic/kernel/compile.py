"""From declarations to a plan: everything that can be refused is refused here, all at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

import attrs
from langchain_core.language_models import BaseChatModel

from symfonic.kernel._lazy import LazyModel
from symfonic.kernel._projector import DEFAULT_CACHE_SIZE, PaletteProjector, bind_tools
from symfonic.kernel._text import scrub
from symfonic.kernel.dispatch import StageDispatcher
from symfonic.kernel.effects import Effect
from symfonic.kernel.errors import EffectError, HandlerError, LimitError, PlanError, PlanRefused, StageError
from symfonic.kernel.forcing import Bound, ForcingSupport, as_bound, check_offered
from symfonic.kernel.plan import Bindings, Limits, Plan
from symfonic.kernel.ports import Binder, CallableModel, EventSink, Handler
from symfonic.kernel.stages import Stage, compile_stages, stage_problems
from symfonic.kernel.toolset import Toolset, tool_problems

__all__ = ["compile_plan"]

MAX_LIMIT = 10**12
"""Above what any limit can mean; a larger number is a slip, and some of them cannot even be written out again."""


def compile_plan(
    *,
    model: object,
    tools: Iterable[object] = (),
    stages: Iterable[Stage] = (),
    handlers: Mapping[str, Handler] | None = None,
    unbound: Iterable[str] = (),
    grants: Iterable[str] = (),
    forcing: ForcingSupport | None = None,
    bind_with: Binder | None = None,
    system: str = "",
    event_sink: EventSink | None = None,
    record_text: bool = False,
    sink_deltas: bool = False,
    limits: Limits | None = None,
    capabilities: Mapping[str, str] | None = None,
    show_tool_errors: bool = False,
    cache_size: int = DEFAULT_CACHE_SIZE,
) -> Plan:
    """Compile declarations into a plan (IPL-1). Nothing here says who contributed what.

    Args:
        model: The unbound chat model.
        tools: The palette, in the order it is to be sent.
        stages: The stages, in any order.
        handlers: Stage name to handler.
        unbound: Names of stages whose handlers are handed to the phase runners later (PRE-2).
        grants: The effects the deployment grants.
        forcing: What the provider answered about forcing; None: nobody asked.
        bind_with: The provider-shaped binding; default: LangChain's ``bind_tools`` on once-converted schemas.
        system: The system text.
        event_sink: Where events go.
        record_text: Whether the sink gets people's text.
        sink_deltas: Whether the sink gets deltas.
        limits: What bounds a turn; default: ``Limits()``.
        capabilities: Capability to the digest of its configuration, secrets redacted before it was taken.
        show_tool_errors: Whether the model is told the text of any tool error.
        cache_size: Bindings kept beside the full palette.

    Raises:
        PlanRefused: With every problem found.
    """
    palette, declared, bound_to = tuple(tools), tuple(stages), dict(handlers or {})
    granted = frozenset((grants,)) if isinstance(grants, str) else frozenset(grants)
    bounds = limits or Limits()
    problems = [
        *tool_problems(palette),
        *stage_problems(declared),
        *_handler_problems(declared, bound_to, frozenset(unbound)),
        *_grant_problems(declared, granted),
        *_resolver_problems(declared),
        *_seam_problems(model, palette, bind_with, event_sink),
        *_limit_problems(bounds),
        *_cache_problems(cache_size),
    ]
    if problems:
        raise PlanRefused(problems)
    toolset = Toolset(palette)
    binder = _schema_binder(toolset) if bind_with is None else _hiding_binder(toolset, bind_with)
    called, projector = model, None
    if palette:
        called = LazyModel(_bind_all(model, palette, toolset.names, binder))
        projector = PaletteProjector(model, palette, called, forcing=forcing, bind_with=binder, cache_size=cache_size)
    return Plan(
        stage_program=compile_stages(declared),
        effect_grants=granted,
        limits=bounds,
        system=scrub(system),
        capabilities=capabilities or {},
        show_tool_errors=show_tool_errors,
        bindings=Bindings(
            model=called,
            palette=projector,
            tools=palette,
            stage_handlers=bound_to,
            event_sink=event_sink,
            record_text=record_text,
            sink_deltas=sink_deltas,
            toolset=toolset,
            dispatcher=StageDispatcher(bound_to),
        ),
    )


def _schema_binder(toolset: Toolset) -> Binder:
    def bind(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, str | None]:
        return bind_tools(model, toolset.schemas(tools), forced)  # type: ignore[arg-type]  # compile checked that it binds

    return bind


def _hiding_binder(toolset: Toolset, bind_with: Binder) -> Binder:
    def bind(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, str | None] | Bound:
        return bind_with(model, toolset.offered(tools), forced)

    return bind


def _bind_all(model: object, palette: Sequence[object], names: tuple[str, ...], binder: Binder) -> Callable[[], Bound]:
    def bind() -> Bound:
        return check_offered(as_bound(binder(model, list(palette), None), names, sent=False), names)

    return bind


def _handler_problems(
    stages: Sequence[Stage], handlers: Mapping[str, Handler], unbound: frozenset[str]
) -> list[PlanError]:
    names = {stage.name for stage in stages if isinstance(stage.name, str)}
    problems: list[PlanError] = [
        HandlerError(f"stage {stage.name!r} has no handler", subjects=(stage.name,))
        for stage in stages
        if stage.name in names and stage.name not in handlers and stage.name not in unbound
    ]
    for name, handler in handlers.items():
        if name not in names:
            close = get_close_matches(str(name), sorted(map(str, names)), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(HandlerError(f"a handler is given for {name!r}, which is no stage{hint}", subjects=(name,)))
        elif not callable(handler):
            text = f"the handler of stage {name!r} is a {type(handler).__name__}, which cannot be called"
            problems.append(HandlerError(text, subjects=(name,)))
    strangers = sorted(unbound - names, key=str)
    problems += [
        HandlerError(f"{name!r} is left unbound and is no stage; drop it", subjects=(name,)) for name in strangers
    ]
    return problems


def _grant_problems(stages: Sequence[Stage], grants: frozenset[str]) -> list[PlanError]:
    known = frozenset(Effect)
    problems: list[PlanError] = []
    for grant in sorted(grants - known, key=str):
        close = get_close_matches(str(grant), sorted(map(str, known)), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
        problems.append(EffectError(f"the unknown effect {grant!r} is granted; {hint}"))
    for stage in stages:
        for effect in sorted((stage.effects & known) - grants):
            text = (
                f"stage {stage.name!r} declares the effect {effect}, which is not granted; grant it or drop the stage"
            )
            problems.append(EffectError(text, subjects=(stage.name,)))
    return problems


def _resolver_problems(stages: Sequence[Stage]) -> list[PlanError]:
    resolvers: dict[str, list[str]] = defaultdict(list)
    for stage in stages:
        if stage.resolves is not None:
            resolvers[stage.resolves].append(stage.name)
    return [
        StageError(
            f"capability {name!r} has {len(names)} resolvers, {', '.join(sorted(names))}; keep one", subjects=names
        )
        for name, names in sorted(resolvers.items())
        if len(names) > 1
    ]


def _seam_problems(
    model: object, palette: Sequence[object], bind_with: Binder | None, event_sink: EventSink | None
) -> list[PlanError]:
    problems: list[PlanError] = []
    kind = type(model).__name__
    if not isinstance(model, CallableModel):
        problems.append(
            HandlerError(f"the model is a {kind}, which has no ainvoke and astream; wanted a LangChain chat model")
        )
    elif palette and bind_with is None and not _can_bind(model):
        problems.append(
            HandlerError(f"{kind} does not implement tool binding; drop the tools or take a model that binds")
        )
    if bind_with is not None and not callable(bind_with):
        problems.append(HandlerError(f"bind_with is a {type(bind_with).__name__}, which cannot be called"))
    if event_sink is not None and not callable(getattr(event_sink, "emit", None)):
        problems.append(HandlerError(f"the event sink is a {type(event_sink).__name__}, which has no emit"))
    return problems


def _can_bind(model: object) -> bool:
    """Whether the model binds tools; LangChain's base class has a bind_tools that only raises."""
    only_raises = isinstance(model, BaseChatModel) and type(model).bind_tools is BaseChatModel.bind_tools
    return callable(getattr(model, "bind_tools", None)) and not only_raises


def _limit_problems(limits: Limits) -> list[PlanError]:
    if not isinstance(limits, Limits):
        return [LimitError(f"limits is a {type(limits).__name__}; wanted Limits(...)")]
    problems: list[PlanError] = []
    for field in attrs.fields(Limits):
        value = getattr(limits, field.name)
        if value is None:
            continue
        seconds = field.name.endswith("_s")
        fits = isinstance(value, int | float if seconds else int) and not isinstance(value, bool)
        if not fits or not 0 < value <= MAX_LIMIT:
            wanted = "seconds above 0" if seconds else "a whole number above 0"
            problems.append(LimitError(f"limit {field.name} is {value!r}; wanted {wanted}, or none at all"))
    return problems


def _cache_problems(cache_size: object) -> list[PlanError]:
    if isinstance(cache_size, int) and not isinstance(cache_size, bool) and cache_size >= 0:
        return []
    return [LimitError(f"cache_size is {cache_size!r}; wanted a whole number, 0 to keep no binding")]

"""The projector: hands out the model bound to whatever subset a turn resolved."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

import attrs

from symfonic.kernel._palette_values import NOTHING, Binding, Names, is_provider_run, palette_identity, tool_name
from symfonic.kernel.errors import PaletteError
from symfonic.kernel.forcing import ForcingSupport, as_bound, check_offered
from symfonic.kernel.ports import BindableModel, Binder

__all__ = ["PaletteProjector", "bind_tools"]

DEFAULT_CACHE_SIZE = 256
"""Bindings kept beside the full palette: some hundred kB at 10 tools each, and far more than a deployment's usual sets."""

_Key = tuple[Names, str | None]


def bind_tools(model: BindableModel, tools: Sequence[object], forced: str | None) -> tuple[object, str | None]:
    """The default binder: LangChain's own ``bind_tools``; with no tools the model itself (PAL-9)."""
    if not tools:
        return model, None
    if forced is None:
        return model.bind_tools(tools), None
    return model.bind_tools(tools, tool_choice=forced), None


class PaletteProjector:
    """Binds the model to subsets of the palette, each subset once while it is cached.

    Safe from several threads and tasks; a subset raced for is bound once (PAL-12).

    Args:
        model: The unbound chat model.
        tools: The palette in plan order, or None.
        bound: What the plan already bound and the caller already calls.
        wrap: Turns a freshly bound model into the shape of ``bound``; never sees ``bound`` itself.
        forcing: What the provider answered; None: nobody asked, and forcing is attempted.
        bind_with: Does the provider-shaped binding: ``(model, tools, forced)`` to ``(bound_model, reason)`` or a
            :class:`~symfonic.kernel.forcing.Bound`. Default: LangChain's ``bind_tools``.
        cache_size: Bindings kept beside ``bound``, least recently used out first.
    """

    def __init__(
        self,
        model: object,
        tools: Iterable[object] | None,
        bound: object,
        *,
        wrap: Callable[[object], object] | None = None,
        forcing: ForcingSupport | None = None,
        bind_with: Binder | None = None,
        cache_size: int = DEFAULT_CACHE_SIZE,
    ) -> None:
        self._model = model
        self._tools = tuple(tools or ())
        self._by_name = {tool_name(tool): tool for tool in self._tools}
        self._palette = frozenset(self._by_name)
        self._provider_run = frozenset(name for name, tool in self._by_name.items() if is_provider_run(tool))
        self._wrap = wrap
        self._forcing = forcing
        self._bind_with: Binder = bind_with or bind_tools  # type: ignore[assignment]  # the default calls a BindableModel
        self._cache_size = cache_size
        self._cache: OrderedDict[_Key, Binding] = OrderedDict()
        self._binding_now: dict[_Key, Future[Binding]] = {}
        self._lock = threading.Lock()
        self._full = Binding(bound, palette_identity(None), tuple(self._by_name))

    @property
    def tools(self) -> tuple[object, ...]:
        """The palette in plan order."""
        return self._tools

    @property
    def names(self) -> frozenset[str]:
        """The names of the palette."""
        return self._palette

    @property
    def provider_run(self) -> frozenset[str]:
        """The names of tools the provider runs itself."""
        return self._provider_run

    def bind(self, names: Names, forced: str | None = None) -> object:
        """The model to call for a selection; see :meth:`binding`."""
        return self.binding(names, forced).model

    def binding(self, names: Names, forced: str | None = None) -> Binding:
        """The model bound to a selection, with what can be told about it.

        Args:
            names: The tools to offer. None, empty or matching nothing: the full palette (PAL-5). NOTHING: none.
            forced: The tool that must be called first.

        Raises:
            PaletteError: The force is outside the palette, outside a matching selection, or beside NOTHING.
        """
        key = (self._normal(names), forced)
        if forced is not None:
            self._check_force(*key)
        elif key[0] is None:
            return self._full
        with self._lock:
            cached = self._cache.get(key)
            if cached is not None:
                self._cache.move_to_end(key)
                return cached
            pending = self._binding_now.get(key)
            if pending is None:
                mine = self._binding_now[key] = Future()
        return pending.result() if pending is not None else self._bind_once(key, mine)

    def _normal(self, names: Names) -> Names:
        """Unknown names leave; what matches nothing or covers everything is the full palette."""
        if names is None or names is NOTHING:
            return names
        known = names & self._palette
        return None if not known or len(known) == len(self._palette) else known

    def _check_force(self, names: Names, forced: str | None) -> None:
        offered = frozenset[str]() if names is NOTHING else self._palette if names is None else names
        if forced not in offered:
            message = f"cannot force {forced!r}, it is not offered; valid: {', '.join(sorted(offered)) or 'none'}"
            raise PaletteError(message)

    def _bind_once(self, key: _Key, mine: Future[Binding]) -> Binding:
        try:
            binding = self._bind_fresh(*key)
        except BaseException as error:
            # Whatever stopped the bind, an interrupt too, must reach the threads that wait for it: they would wait for ever.
            with self._lock:
                del self._binding_now[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._cache[key] = binding
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
            del self._binding_now[key]
        mine.set_result(binding)
        return attrs.evolve(binding, fresh=True)

    def _bind_fresh(self, names: Names, forced: str | None) -> Binding:
        selected = () if names is NOTHING else tuple(n for n in self._by_name if names is None or n in names)
        sent, kernel_reason = self._force_to_send(forced)
        answer = self._bind_with(self._model, [self._by_name[n] for n in selected], sent)
        bound = check_offered(as_bound(answer, selected, sent=sent is not None), self._by_name)
        model = bound.model if self._wrap is None else self._wrap(bound.model)
        reasons = [reason for reason in (bound.reason, kernel_reason) if reason]
        return Binding(
            model,
            palette_identity(names, forced),
            bound.offered,
            sent if bound.forced_sent else None,
            "; ".join(reasons) or None,
        )

    def _force_to_send(self, forced: str | None) -> tuple[str | None, str | None]:
        """What goes to the binder, and the kernel's own reason (PAL-10)."""
        support = self._forcing
        if forced is None or support is None:
            return forced, None
        said = f": {support.reason}" if support.reason else ""
        if support.scope == "none":
            return None, f"the force of {forced!r} is not sent, the provider's answer is {support.answer}{said}"
        if support.answer == "unknown" and support.scope == "named":
            return forced, f"the force of {forced!r} is sent and not known to be honoured{said}"
        return forced, None

"""Routers: built, put on a shelf for the capabilities that use them, and none left lying."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter

from symfonic.host.workbench import Shelf, Workbench
from symfonic.kernel.errors import ConfigError, PluginError
from symfonic.plugin import Route, Router

__all__ = ["build_routers", "check_routers_taken"]


async def build_routers(work: Workbench) -> None:
    """Build every router and put it on the shelf, under its id, or ``plugin.id`` where two plugins share one."""
    declared = work.each(Router)
    times = Counter(given.id for _, given in declared)
    routes: dict[str, Route] = {}
    aliases: dict[str, str] = {}
    labels: dict[str, str] = {}
    for plugin, given in declared:
        route = await work.make(plugin, given)
        if route is None:
            continue
        if not callable(route):
            work.fault(plugin, f"router {given.id!r} built a {type(route).__name__}, wanted an async function")
            continue
        unfit = _signature_fault(route)
        if unfit is not None:
            text = f"router {given.id!r} takes {unfit}; wanted an async function of (turn) or (turn, window)"
            work.fault(plugin, text)
            route = _stand_in  # so that whoever takes it is not blamed beside it
        full = f"{plugin.id}.{given.id}"
        key = given.id if times[given.id] == 1 else full
        routes[key] = route
        aliases[full] = key
        labels[key] = f"{full}{plugin.contributor.aside}"
        work.router_owners[key] = plugin.contributor
    work.shelf = Shelf(routes, aliases, labels)


async def _stand_in(_: object) -> None:
    """Stands for a router that is refused; no turn ever asks it."""


def _signature_fault(route: Route) -> str | None:
    """The signature of a router that takes neither one argument nor two; None where it is fit, or tells none."""
    try:
        signature = inspect.signature(route)
    except ValueError:
        return None  # a builtin tells no signature
    for count in (1, 2):
        with contextlib.suppress(TypeError):
            signature.bind(*range(count))
            return None
    return str(signature)


def check_routers_taken(work: Workbench) -> None:
    """A contributed router that no capability uses is an error (TLS-0)."""
    if any(isinstance(problem, PluginError) for problem in work.problems):
        return  # what was to take them may not have been built
    for router in work.shelf.ids:
        if router not in work.shelf.taken:
            text = (
                f"the router {router!r} of {work.router_owners[router]} is used by no capability; select one that uses "
                'routers by adding [[plugin]] with id = "tools" and grants = ["tools.narrow"], or drop the router\'s plugin'
            )
            work.problems.append(ConfigError([text]))

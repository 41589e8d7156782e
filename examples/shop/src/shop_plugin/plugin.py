"""The plugin: what the shop contributes, hook by hook.

The entry point names this module. It is imported whenever the plugin is selected, so it imports
nothing heavy; what is expensive to import is imported by the factory that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shop_plugin import audit, audit_file, order_router, policy
from shop_plugin.config import Config
from symfonic.plugin import (
    BuildContext,
    Effect,
    EventSink,
    HookContext,
    Phase,
    Router,
    StageHandler,
    Tools,
    hookimpl,
)

__all__ = ["symfonic_event_sinks", "symfonic_routers", "symfonic_stages", "symfonic_tools"]


def _build_tools(ctx: BuildContext[Config]) -> Sequence[Callable[..., object]]:  # noqa: ARG001  # no setting concerns the tools
    # Deferred: the tools import langchain-core and pydantic, 800 modules that a listing of plugins can do without.
    from shop_plugin.tools import TOOLS  # noqa: PLC0415

    return TOOLS


@hookimpl
def symfonic_tools(context: HookContext) -> list[Tools]:  # noqa: ARG001  # the hook's shape
    """Contribute the shop's tools."""
    return [Tools("shop", _build_tools, config=Config, summary="Orders, refunds, stock, customers, sales and parcels.")]


@hookimpl
def symfonic_routers(context: HookContext) -> list[Router]:  # noqa: ARG001  # the hook's shape
    """Contribute the router that knows order numbers."""
    summary = "Offers the tools for one order when the prompt names an order number."
    return [Router("order-number", order_router.build, config=Config, summary=summary)]


@hookimpl
def symfonic_stages(context: HookContext) -> list[StageHandler]:  # noqa: ARG001  # the hook's shape
    """Contribute the refund policy, and the audit at three phases."""
    guard = StageHandler(
        "refund-limit",
        policy.build,
        config=Config,
        summary="Refuses refunds above refund_limit_eur.",
        phase=Phase.PRE_TOOL,
        effects=(Effect.TOOL_CALL_REFUSE,),
    )
    # on_crash: an audit that breaks is reported, it does not take the answer away.
    audits = [
        StageHandler(name, factory, config=Config, summary=summary, phase=phase, on_crash="report")
        for name, factory, summary, phase in (
            ("audit-round", audit.build_round, "Logs how much goes to the model.", Phase.PRE_MODEL),
            ("audit-call", audit.build_call, "Logs each tool call.", Phase.POST_TOOL),
            ("audit-turn", audit.build_turn, "Logs which tools a turn called.", Phase.SETTLE),
        )
    ]
    return [guard, *audits]


@hookimpl
def symfonic_event_sinks(context: HookContext) -> list[EventSink]:  # noqa: ARG001  # the hook's shape
    """Contribute the audit file."""
    summary = "Appends events to audit_file as JSON lines."
    # queued: a disk may be slow, and no turn is to wait for it.
    return [EventSink("audit-file", audit_file.build, config=Config, summary=summary, queued=True)]

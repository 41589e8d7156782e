"""``plan``: what the deployment compiles to, and who contributed it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from symfonic.host.cli._exit import json_errors
from symfonic.host.cli._opening import opened
from symfonic.host.cli._options import config_option, drawing, echo_json, json_option

if TYPE_CHECKING:
    from symfonic.kernel.stages import Stage

__all__ = ["plan"]


@click.command()
@config_option
@json_option
def plan(config: Path | None, *, as_json: bool) -> None:
    """Show the compiled plan: stages in order, tools, limits, fingerprint, and who contributed what."""
    with json_errors(wanted=as_json):
        described = asyncio.run(_described(config))
    if as_json:
        echo_json(described)
        return
    drawing().print_plan(described)


async def _described(config: Path | None) -> dict[str, object]:
    async with opened(config) as host:
        compiled, provenance = host.plan, host.provenance
        return {
            "fingerprint": compiled.equality_key,
            "model": str(provenance.model),
            "forcing": None if provenance.forcing is None else str(provenance.forcing),
            "stages": [
                {**_stage(stage), "contributor": str(provenance.stages[stage.name])}
                for stage in compiled.stage_program.stages
            ],
            "tools": [
                {"name": name, "runs": str(tool.runs), "contributor": str(provenance.tools[name])}
                for name, tool in compiled.bindings.toolset.by_name.items()
            ],
            "routers": {name: str(owner) for name, owner in provenance.routers.items()},
            "sinks": {name: str(owner) for name, owner in provenance.sinks.items()},
            "grants": sorted(compiled.effect_grants),
            "limits": attrs.asdict(compiled.limits),
            "dropped_orderings": list(host.dropped_orderings),
        }


def _stage(stage: Stage) -> dict[str, object]:
    return {
        "stage": stage.name,
        "phase": str(stage.phase),
        "effects": sorted(stage.effects),
        "before": list(stage.before),
        "after": list(stage.after),
        "timeout_s": stage.timeout_s,
        "resolves": stage.resolves,
        "on_crash": stage.on_crash,
    }

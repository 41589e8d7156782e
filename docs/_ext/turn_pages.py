"""Pages made from the kernel's own tables: the phase table and the drawing of a turn."""

from __future__ import annotations

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from symfonic.kernel.phases import PHASES, Phase, PhaseRow

ROUND = (Phase.PRE_MODEL, Phase.POST_MODEL)
CALL = (Phase.PRE_TOOL, Phase.POST_TOOL)
COLUMN = 30


def drawing() -> str:
    """The turn as a tree, phase by phase in the order of the ladder; rounds and calls drawn inside their loops."""
    lines = ["request"]
    for phase, row in PHASES.items():
        if phase is ROUND[0]:
            lines += ["│", "├─ round, until an answer, a limit, deferred calls or a fault"]
        if phase is CALL[0]:
            lines.append("│  └─ tool call, several of a round side by side")
        lines.append(_line(phase, row))
        if phase is ROUND[0]:
            lines.append("│  ├─ (the model)")
        if phase is CALL[0]:
            lines.append("│     ├─ (the tool)")
        if phase is CALL[-1]:
            lines.append("│")
    return "\n".join([*lines, "result"])


def _line(phase: Phase, row: PhaseRow) -> str:
    indent = "│     " if phase in CALL else "│  " if phase in ROUND else ""
    corner = "└─" if phase in (CALL[-1], tuple(PHASES)[-1]) else "├─"
    return f"{f'{indent}{corner} {phase}'.ljust(COLUMN)}{row.runs}"


class PhaseTable(SphinxDirective):
    """``{phase-table}``: every phase, when it runs, what it is handed, its outcome and its effects."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """The table."""
        rows = [
            f"| {phase} | {row.runs} | {', '.join(row.handed)} | {row.outcome} | {', '.join(sorted(row.effects)) or '-'} |"
            for phase, row in PHASES.items()
        ]
        text = [
            "| phase | runs | handed, beside plan, request and stage | outcome | effects |",
            "|---|---|---|---|---|",
            *rows,
        ]
        holder = nodes.Element()
        self.state.nested_parse(StringList(text, source="phases"), self.content_offset, holder)
        return holder.children


class TurnDrawing(SphinxDirective):
    """``{turn-drawing}``: the turn, drawn from the phase table."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """The drawing."""
        text = drawing()
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("phase-table", PhaseTable)
    app.add_directive("turn-drawing", TurnDrawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

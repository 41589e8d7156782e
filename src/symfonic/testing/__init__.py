"""For tests of plugins and deployments: a scripted chat model, a recording sink, and a whole turn in one call."""

from symfonic.testing._calls import Call, call_tool, call_tools
from symfonic.testing._model import ScriptedModel, Step
from symfonic.testing._scripted import ScriptRun, run_scripted
from symfonic.testing._sink import RecordingSink

__all__ = [
    "Call",
    "RecordingSink",
    "ScriptRun",
    "ScriptedModel",
    "Step",
    "call_tool",
    "call_tools",
    "run_scripted",
]

"""For tests of plugins and deployments: a scripted chat model, a recording sink."""

from symfonic.testing._calls import Call, call_tool, call_tools
from symfonic.testing._model import ScriptedModel
from symfonic.testing._sink import RecordingSink

__all__ = ["Call", "RecordingSink", "ScriptedModel", "call_tool", "call_tools"]

"""The kernel: runs turns, and never knows who contributed what.

What stands here loads no langchain_core. ``symfonic.kernel.compile`` and ``symfonic.kernel.turn`` do, and are imported
from their modules.
"""

from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.forcing import BindRequest, Bound, ForcingSupport
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import NOTHING, Binding, ToolPalette
from symfonic.kernel.phases import PHASE_LADDER, PHASES, Phase
from symfonic.kernel.request import RequestContext, TurnRequest
from symfonic.kernel.resolution import Resolved
from symfonic.kernel.stages import Stage, StageProgram, compile_stages

__all__ = [
    "NOTHING",
    "PHASES",
    "PHASE_LADDER",
    "Amend",
    "BindRequest",
    "Binding",
    "Bound",
    "Effect",
    "ForcingSupport",
    "Limits",
    "Phase",
    "Refuse",
    "Replace",
    "RequestContext",
    "Resolution",
    "Resolved",
    "Stage",
    "StageProgram",
    "ToolPalette",
    "TurnRequest",
    "compile_stages",
]

"""The host: finds, chooses, loads and composes plugins, and runs turns on the plan they make.

Importing it loads neither langchain_core nor any plugin.
"""

from symfonic.host.compose import Host, HostStream, Use, compose
from symfonic.host.provenance import Contributor, Provenance
from symfonic.kernel.events import TextDelta, TurnErrored, TurnFinished
from symfonic.kernel.request import TurnRequest

__all__ = [
    "Contributor",
    "Host",
    "HostStream",
    "Provenance",
    "TextDelta",
    "TurnErrored",
    "TurnFinished",
    "TurnRequest",
    "Use",
    "compose",
]

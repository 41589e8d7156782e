"""The one page a plugin author imports: the hook marker, the descriptors, and the values handlers work with.

Importing it loads neither langchain_core nor any plugin.
"""

from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import ConfigError, PaletteError, PluginError
from symfonic.kernel.events import Event
from symfonic.kernel.forcing import BindRequest, Bound, ForcingSupport
from symfonic.kernel.injection import ToolTurn
from symfonic.kernel.palette import NOTHING, ToolPalette, tool_name
from symfonic.kernel.phases import Phase
from symfonic.kernel.post_model import PostModelContext
from symfonic.kernel.post_tool import PostToolContext
from symfonic.kernel.pre_model import PreModelContext
from symfonic.kernel.pre_tool import PreToolContext
from symfonic.kernel.prompt_assembly import PromptAssemblyContext
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.resolve import ResolveContext
from symfonic.kernel.settle import SettleContext
from symfonic.plugin._descriptors import (
    BuildContext,
    ChatModel,
    Contribution,
    EventSink,
    ForcingProvider,
    HookContext,
    Route,
    Router,
    RouterShelf,
    StageHandler,
    Tools,
)
from symfonic.plugin._hooks import HookSpecs, hookimpl
from symfonic.plugin._rows import RoutedTool

__all__ = [
    "API_VERSION",
    "NOTHING",
    "Amend",
    "BindRequest",
    "Bound",
    "BuildContext",
    "ChatModel",
    "ConfigError",
    "Contribution",
    "Effect",
    "Event",
    "EventSink",
    "ForcingProvider",
    "ForcingSupport",
    "HookContext",
    "HookSpecs",
    "PaletteError",
    "Phase",
    "PluginError",
    "PostModelContext",
    "PostToolContext",
    "PreModelContext",
    "PreToolContext",
    "PromptAssemblyContext",
    "Refuse",
    "Replace",
    "Resolution",
    "ResolveContext",
    "Route",
    "RoutedTool",
    "Router",
    "RouterShelf",
    "SettleContext",
    "StageHandler",
    "ToolPalette",
    "ToolTurn",
    "Tools",
    "TurnRequest",
    "hookimpl",
    "tool_name",
]

API_VERSION = "1.0"
"""The version of this page."""

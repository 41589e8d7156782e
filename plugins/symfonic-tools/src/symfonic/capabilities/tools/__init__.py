"""The tools capability: per-turn narrowing by routers."""

from symfonic.capabilities.tools.capability import RoutingMiss, ToolsCapability
from symfonic.capabilities.tools.keywords import RoutedTool, keyword_router

__all__ = ["RoutedTool", "RoutingMiss", "ToolsCapability", "keyword_router"]

"""All that is drawn for people."""

from symfonic.host.cli._tables import print_plan, print_plugin, print_plugins, print_tools
from symfonic.host.cli._trace import print_trace

__all__ = ["print_plan", "print_plugin", "print_plugins", "print_tools", "print_trace"]

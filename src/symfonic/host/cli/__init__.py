"""The console script ``symfonic-kernel``.

Importing it loads neither langchain_core, nor rich, nor any plugin.
"""

from symfonic.host.cli._app import main

__all__ = ["main"]

"""``python -m symfonic.host.cli`` is the console script ``symfonic-kernel``."""

from symfonic.host.cli._app import main

main()

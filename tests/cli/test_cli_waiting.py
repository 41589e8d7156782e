"""A word for whoever waits at a terminal."""

from __future__ import annotations

import io
import threading

from symfonic.host.cli._waiting import waiting


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and tells when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


def test_long_work_is_told_and_the_line_wiped() -> None:
    """Once it takes longer than the patience, the text stands there; afterwards the line is empty."""
    terminal = Terminal()
    with waiting("loading", patience_s=0.001, stream=terminal):
        assert terminal.written.wait(30)
        assert terminal.getvalue() == "loading ..."
    assert terminal.getvalue() == "loading ...\r\x1b[K"


def test_short_work_says_nothing() -> None:
    """Within the patience nothing is written."""
    terminal = Terminal()
    with waiting("loading", patience_s=600, stream=terminal):
        pass
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_said() -> None:
    """Piped output gets no progress."""
    pipe = io.StringIO()
    with waiting("loading", patience_s=0, stream=pipe):
        pass
    assert pipe.getvalue() == ""

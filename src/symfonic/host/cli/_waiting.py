"""A word for whoever waits at a terminal: loading a model's package may take seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["waiting"]

PATIENCE_S = 1.0
"""Seconds before anything is said; most starts take less."""


@contextmanager
def waiting(text: str, *, patience_s: float = PATIENCE_S, stream: TextIO | None = None) -> Iterator[None]:
    """Say what is being waited for, once it takes long, on a terminal alone; the line is wiped when it is over.

    Args:
        text: What is being done.
        patience_s: Seconds before it is said.
        stream: Where; default: standard error.
    """
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield
        return
    said = threading.Event()

    def say() -> None:
        out.write(f"{text} ...")
        out.flush()
        said.set()

    timer = threading.Timer(patience_s, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if said.is_set():
            out.write("\r\x1b[K")
            out.flush()

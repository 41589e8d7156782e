"""The shop's database: a private copy in memory for each process, built on first use."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files

import attrs

__all__ = ["SHOP", "Cell", "Database", "Row", "select"]

Cell = str | int | float | None
Row = dict[str, Cell]


@attrs.define(eq=False)
class Database:
    """One SQLite connection behind one lock, filled from ``shop.sql``.

    A database in memory lives as long as its one connection, and no tool works on it for longer
    than a millisecond: threads that queue at a lock are simpler than a pool, and as fast.
    What a tool writes is seen by every turn of this process, by no other process, and is gone
    when the process ends.
    """

    _connection: sqlite3.Connection | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread; commit at the end, roll back on an exception.

        Not to be nested: helpers are given the connection instead.
        """
        with self._lock:
            if self._connection is None:
                self._connection = _filled()
            with self._connection:
                yield self._connection

    def rows(self, query: str, parameters: Mapping[str, Cell] | None = None) -> list[Row]:
        """Read all rows of one query, in the query's order; may be empty."""
        with self.transaction() as connection:
            return select(connection, query, parameters)

    def reset(self) -> None:
        """Throw the copy away, so that the next use starts from ``shop.sql`` again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


def select(connection: sqlite3.Connection, query: str, parameters: Mapping[str, Cell] | None = None) -> list[Row]:
    """Read all rows of one query inside a transaction."""
    return [dict(row) for row in connection.execute(query, dict(parameters or {}))]


def _filled() -> sqlite3.Connection:
    # Worker threads take turns under the lock, which SQLite's own check cannot know.
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    script = files("shop_plugin").joinpath("shop.sql").read_text(encoding="utf-8")
    connection.executescript(script)
    return connection


SHOP = Database()

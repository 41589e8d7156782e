"""A small HTTP server on the loopback that answers from a script and keeps what it was sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any, Self

import attrs

__all__ = ["LoopbackServer", "Piece", "Received", "Reply", "Step", "sse"]

PATIENCE_S = 30.0
"""How long a handler waits for a gate. No test needs it; without it a broken one would hang for ever."""

_serials = count(1)


@attrs.frozen(kw_only=True)
class Received:
    """One request as it came in.

    Args:
        number: Counts from 0.
        path: Without the server's own prefix.
        headers: Names in lower case.
        raw: The body.
        connection: The client's address, which tells connections apart.
    """

    number: int
    path: str
    headers: Mapping[str, str]
    raw: bytes
    connection: tuple[str, int]

    @property
    def body(self) -> dict[str, Any]:
        """The body, read as JSON."""
        read = json.loads(self.raw)
        assert isinstance(read, dict)
        return read


Piece = bytes | threading.Event
"""Bytes to send in one chunk, or a gate to wait for before the next."""


@attrs.frozen(kw_only=True)
class Reply:
    """One answer.

    Args:
        status: The HTTP status.
        headers: Beside those that go with the body.
        pieces: The body; sent in chunks where ``chunked``.
        chunked: Whether it is a stream.
        cut: Whether the connection is closed after the last piece, in the middle of the body.
        keep_alive: Whether the connection may be used again.
        on_request: Called when the request has come in, before anything is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    pieces: tuple[Piece, ...] = ()
    chunked: bool = False
    cut: bool = False
    keep_alive: bool = False
    on_request: Callable[[], None] | None = None

    @classmethod
    def of_json(cls, body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        """A whole answer."""
        said = {"Content-Type": "application/json", **(headers or {})}
        return cls(status=status, headers=said, pieces=(json.dumps(body).encode(),))

    @classmethod
    def of_events(cls, *events: bytes) -> Reply:
        """A stream of server-sent events."""
        return cls(headers={"Content-Type": "text/event-stream"}, pieces=events, chunked=True)


Step = Reply | Callable[[Received], Reply]
"""One step of a script: an answer, or a function of the request that makes it."""


def sse(data: object, event: str | None = None) -> bytes:
    """One server-sent event; a text goes out as it is, all else as JSON."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


class LoopbackServer:
    """Answers the n-th request with the n-th step, on a free port of 127.0.0.1.

    A context manager: leaving it releases held answers, ends open connections, waits for every handler, and fails over what went wrong in one.
    Its url has a path of its own, since the clients keep their connections by url and ports are used again.
    """

    def __init__(self) -> None:
        self.script: list[Step] = []
        self.requests: list[Received] = []
        self.faults: list[str] = []
        self.connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._prefix = f"/server-{next(_serials)}"
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = False  # so that leaving joins them
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="loopback-server")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{self._prefix}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies received, read as JSON, in order."""
        return [request.body for request in self.requests]

    def will(self, *steps: Step) -> Self:
        """Add steps to the script."""
        self.script.extend(steps)
        return self

    def __enter__(self) -> Self:
        """Start to listen."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, with every handler ended; tell what went wrong in one, unless the test failed already."""
        self._leaving.set()
        self._http.shutdown()
        self._thread.join()
        for connection in list(self.connections):
            with suppress(OSError):  # ended meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        if error is None:
            assert self.faults == []
            assert len(self.requests) == len(self.script), "steps of the script were never asked for"

    def take(self, handler: BaseHTTPRequestHandler) -> Reply:
        """Keep a request and find its answer."""
        raw = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        path, address = handler.path.removeprefix(self._prefix), handler.client_address
        with self._lock:
            number = len(self.requests)
            received = Received(number=number, path=path, headers=headers, raw=raw, connection=address)
            self.requests.append(received)
            if number >= len(self.script):
                self.faults.append(f"the script of {len(self.script)} steps has none for request {number + 1}")
                return Reply.of_json({"error": {"message": "the script is over"}}, status=400)
            step = self.script[number]
        return step(received) if callable(step) else step

    def wait(self, gate: threading.Event) -> None:
        """Wait for a gate; leaving the server opens them all."""
        for _ in range(int(PATIENCE_S / 0.05)):
            if gate.wait(0.05) or self._leaving.is_set():
                return
        self.faults.append("a gate was never opened")


def _handler_of(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            """Note an open connection."""
            super().setup()
            server.connections.add(self.connection)

        def finish(self) -> None:
            """Note that it ends."""
            server.connections.discard(self.connection)
            super().finish()

        def do_POST(self) -> None:
            """Answer one request."""
            try:
                reply = server.take(self)
                if reply.on_request is not None:
                    reply.on_request()
                self._send(reply)
            except ConnectionError:
                self.close_connection = True  # the client has gone, as a cancelled one does
            except Exception as error:
                self.close_connection = True
                server.faults.append(repr(error))

        def _send(self, reply: Reply) -> None:
            self.close_connection = reply.cut or not reply.keep_alive
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                length = sum(len(piece) for piece in reply.pieces if isinstance(piece, bytes))
                self.send_header("Content-Length", str(length + reply.cut))
            self.send_header("Connection", "close" if self.close_connection else "keep-alive")
            self.end_headers()
            for piece in reply.pieces:
                if isinstance(piece, threading.Event):
                    server.wait(piece)
                else:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.chunked else piece)
            if reply.chunked and not reply.cut:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests read what was received."""

    return Handler

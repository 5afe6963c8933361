"""The Jolokia agent of a fake Cassandra node on 127.0.0.1, with faults that a test can set at any time."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from tests.faults.fake_node import FakeNode, Json, is_about


@dataclass(frozen=True)
class Exchange:
    """A POST request or a new connection.

    body  the body of the correct response, empty for a new connection.
    over  an event that `FakeJolokia.stop` sets.
    """

    stream: socket.socket
    body: bytes
    over: threading.Event

    def send(self, data: bytes) -> None:
        self.stream.sendall(data)

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`, and return whether the server is still running."""
        return not self.over.wait(seconds)


Fault = Callable[[Exchange], bool]
"""Replaces the correct response; returns whether the connection stays open."""


def chunked(body: bytes) -> bytes:
    """Return a complete HTTP response like those of Jolokia's JVM agent."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-encoding: chunked\r\nContent-type: application/json; charset=utf-8\r\n\r\n"
    return b"%b%x\r\n%b\r\n0\r\n\r\n" % (head, len(body), body)


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Return a complete HTTP response like those of Jolokia in a servlet container or behind a reverse proxy."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


class FakeJolokia:
    """The fake server. If set, `fault` handles every POST request, and `greeting` every new connection.

    posts  the number of POST requests.
    ticks  the number of those that read the counters of client requests, as one request in each tick does.
    """

    def __init__(self, node: FakeNode | None = None) -> None:
        self.node = node or FakeNode()
        self.fault: Fault | None = None
        self.greeting: Fault | None = None
        self.connections = 0
        self.posts = 0
        self.ticks = 0
        self._lock = threading.Lock()
        self._streams: set[socket.socket] = set()
        # Keep the port reserved even while the server is not listening.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jolokia"

    def start(self) -> None:
        """Start listening; the port stays the same after `stop`."""
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        threading.Thread(target=self._accept, args=(self._listener, self._over), daemon=True).start()

    def stop(self) -> None:
        """Stop listening and close all connections."""
        self._over.set()
        _shut(self._listener)
        self._listener.close()
        self.drop_connections()

    def close(self) -> None:
        """Stop, and release the port."""
        self.stop()
        self._reserved.close()

    def drop_connections(self) -> None:
        """Close all connections, as a proxy closes idle ones."""
        with self._lock:
            for stream in self._streams:
                _shut(stream)

    def _accept(self, listener: socket.socket, over: threading.Event) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(stream, over), daemon=True).start()

    def _serve(self, stream: socket.socket, over: threading.Event) -> None:
        self.connections += 1
        with stream, stream.makefile("rb") as incoming:
            with self._lock:
                self._streams.add(stream)
            try:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.greeting is None or self.greeting(Exchange(stream, b"", over)):
                    self._converse(stream, incoming, over)
            except OSError:
                # Either the client or `drop_connections` has closed the connection.
                pass
            finally:
                with self._lock:
                    self._streams.discard(stream)

    def _converse(self, stream: socket.socket, incoming: BinaryIO, over: threading.Event) -> None:
        while (requests := _post(incoming)) is not None:
            self.posts += 1
            body = json.dumps([self.node.answer(request) for request in requests]).encode()
            fault = self.fault
            if fault is None:
                stream.sendall(chunked(body))
            elif not fault(Exchange(stream, body, over)):
                return
            self.ticks += any(is_about(request, "read", "type=ClientRequest") for request in requests)


def _post(incoming: BinaryIO) -> list[Json] | None:
    """Return the Jolokia requests in the next POST request, or None if no POST request follows."""
    if not incoming.readline().startswith(b"POST "):
        return None
    length = 0
    while (line := incoming.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    requests: list[Json] = json.loads(incoming.read(length) or b"[]")
    return requests


def _shut(stream: socket.socket) -> None:
    # The peer may have closed the connection already.
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)

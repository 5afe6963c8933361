"""HTTP connection faults that a FakeJolokia can produce instead of the correct response."""

import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from tests.faults.fake_jolokia import Exchange, Fault, chunked, http

DRIP_S = 0.01
BLOCK = b"\0" * (1 << 16)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SSH = b"SSH-2.0-OpenSSH_9.6\r\n"
# An ERROR frame of CQL protocol version 4: "Invalid or unsupported protocol version".
CQL = b"\x84\x00\x00\x00\x00\x00\x00\x00\x2e\x00\x00\x00\x0a\x00\x28" + b"Invalid or unsupported protocol version "


def raw(data: bytes) -> Fault:
    """Return a fault that sends these bytes and closes the connection."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(data)
        return False

    return fault


def stalled(data: bytes) -> Fault:
    """Return a fault that sends these bytes and keeps the connection open."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(data)
        return hang(exchange)

    return fault


def hang(exchange: Exchange) -> bool:
    """Send nothing until the client disconnects or the server stops."""
    exchange.stream.settimeout(DRIP_S)
    while exchange.wait(0.0):
        try:
            if not exchange.stream.recv(1 << 16):
                return False
        except TimeoutError:
            continue
    return False


def signalling(reached: threading.Event, fault: Fault) -> Fault:
    """Return a fault that sets `reached` and then behaves like `fault`."""

    def first(exchange: Exchange) -> bool:
        reached.set()
        return fault(exchange)

    return first


def close(_: Exchange) -> bool:
    """Close the connection without a response."""
    return False


def reset(exchange: Exchange) -> bool:
    """Close the connection with a TCP reset."""
    exchange.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def status(line: str, *headers: str, body: bytes = b"no") -> Fault:
    """Return a fault that responds with a status such as "404 Not Found" and keeps the connection open."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(http(body, line, *headers))
        return True

    return fault


def with_length(exchange: Exchange) -> bool:
    """Send the correct response, with a Content-Length. This is not a fault."""
    exchange.send(http(exchange.body))
    return True


def closing(head: str, *, with_length: bool) -> Fault:
    """Return a function that sends the correct response, padded, and closes the connection. This is not a fault."""

    def fault(exchange: Exchange) -> bool:
        body = exchange.body + 3 * len(BLOCK) * b" "
        length = f"\r\nContent-Length: {len(body)}" if with_length else ""
        exchange.send(f"{head}{length}\r\n\r\n".encode() + body)
        return False

    return fault


def body(change: Callable[[bytes], bytes]) -> Fault:
    """Return a fault that responds with the correct body as modified by `change`."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(http(change(exchange.body)))
        return True

    return fault


def value(of: Any) -> Fault:
    """Return a fault that responds with this JSON value."""
    return body(lambda _: json.dumps(of).encode())


def wrong_length(by: int) -> Fault:
    """Return a fault that sends a Content-Length that is off by `by` bytes, and closes the connection."""

    def fault(exchange: Exchange) -> bool:
        length = len(exchange.body) + by
        exchange.send(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + exchange.body)
        return False

    return fault


def truncated(exchange: Exchange) -> bool:
    """Send the head and half of the body, and close the connection."""
    response = http(exchange.body)
    exchange.send(response[: len(response) - len(exchange.body) // 2])
    return False


def truncated_chunks(exchange: Exchange) -> bool:
    """Send half of the body as a chunk, and close the connection without the last chunk."""
    half = exchange.body[: len(exchange.body) // 2]
    exchange.send(CHUNKED + b"%x\r\n%b\r\n" % (len(half), half))
    return False


def dripping_head(exchange: Exchange) -> bool:
    """Send the response byte by byte."""
    return _drip(exchange, http(exchange.body))


def dripping_body(exchange: Exchange) -> bool:
    """Send the head at once, then the padded body byte by byte."""
    head = http(exchange.body).removesuffix(exchange.body)
    exchange.send(head)
    return _drip(exchange, exchange.body + b" " * 10_000)


def dripping_chunks(exchange: Exchange) -> bool:
    """Send an endless body in chunks of one byte."""
    exchange.send(CHUNKED)
    while exchange.wait(DRIP_S):
        exchange.send(b"1\r\n \r\n")
    return False


def _drip(exchange: Exchange, data: bytes) -> bool:
    for byte in data:
        if not exchange.wait(DRIP_S):
            break
        exchange.send(bytes([byte]))
    return False


def endless(head: bytes, repeated: bytes) -> Fault:
    """Return a fault that sends `head`, then `repeated` endlessly."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(head)
        while exchange.wait(0.0):
            exchange.send(repeated)
        return False

    return fault


def large(size: int, *, announced: bool) -> Fault:
    """Return a fault that sends `size` bytes, with a Content-Length if `announced`, and closes the connection."""

    def fault(exchange: Exchange) -> bool:
        length = f"Content-Length: {size}\r\n" if announced else "Connection: close\r\n"
        exchange.send(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        for _ in range(size // len(BLOCK)):
            exchange.send(BLOCK)
        return False

    return fault


def twice(sent: threading.Event) -> Fault:
    """Return a fault that sends the response twice, and then sets `sent`.

    The client could mistake the copy for the response to its next request.
    """

    def fault(exchange: Exchange) -> bool:
        exchange.send(chunked(exchange.body))
        exchange.wait(DRIP_S)
        exchange.send(chunked(exchange.body))
        sent.set()
        return True

    return fault

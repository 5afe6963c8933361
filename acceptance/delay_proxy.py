"""A TCP proxy that delays all data, like a network with a constant round-trip time.

As a program, it serves until SIGTERM: `python -m acceptance.delay_proxy LISTEN TARGET PORT DELAY_MS` forwards
connections from LISTEN:PORT to TARGET:PORT and delays each direction by DELAY_MS milliseconds.
"""

import asyncio
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

from cli.setup.demo.background_process import listens
from tests.waiting import eventually

_READ_BYTES = 1 << 16


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Write everything that is read, each piece `delay_s` after it is read, and close the writer at the end."""
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(_READ_BYTES):
            loop.call_later(delay_s, writer.write, data)
    finally:
        loop.call_later(delay_s, writer.close)


async def _serve(listen: str, target: str, port: int, delay_s: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(target, port)
        for end in (writer, upstream_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        directions = _forward(reader, upstream_writer, delay_s), _forward(upstream_reader, writer, delay_s)
        await asyncio.gather(*directions, return_exceptions=True)

    async with await asyncio.start_server(connected, listen, port) as server:
        await server.serve_forever()


@contextmanager
def delay_proxy(listen: str, target: str, port: int, delay_ms: float) -> Iterator[None]:
    """Run the proxy in a process of its own."""
    words = [sys.executable, "-m", "acceptance.delay_proxy", listen, target, str(port), str(delay_ms)]
    with Popen(words) as process:
        try:
            eventually(lambda: listens(listen, port), 20)
            yield
        finally:
            process.terminate()


if __name__ == "__main__":
    # epoll, the default, would round each delay up to whole milliseconds.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(_serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) / 1000))

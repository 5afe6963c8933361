"""Agents with scripted behaviour, each on its own loopback address; all run in one thread's event loop."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from collector.model.sample_json import encoded
from collector.model.snapshot import Sample
from tests.collector.live.node_samples import sample_of

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Behaviour = Callable[["FakeAgent", str, Reader, Writer], Coroutine[Any, Any, None]]
PORT = 17199


async def healthy(agent: "FakeAgent", head: str, _: Reader, writer: Writer) -> None:
    """Respond like a real agent, with a tick every second."""
    path = urlsplit(head.split(" ", 2)[1]).path
    if path == "/api/v1/node":
        await send_json(writer, agent.node())
    elif "text/event-stream" not in head:
        await send_json(writer, [encoded(agent.sample(float(int(time.time()))))])
    else:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        while True:
            due_s = float(int(time.time()) + 1)
            await asyncio.sleep(due_s - time.time() + 0.05)
            if agent.behaviour is not healthy:
                writer.close()
                return
            body = json.dumps(encoded(agent.sample(due_s)))
            writer.write(f"id: {due_s}\ndata: {body}\n\n".encode())
            await writer.drain()


async def hang(_: "FakeAgent", __: str, ___: Reader, ____: Writer) -> None:
    """Keep the connection open and never respond."""
    await asyncio.sleep(600)


async def slow(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
    """Send a very long response, byte by byte."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"s" * 10000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.1)


async def endless(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
    """Send an endless response as fast as the client reads it."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
    while True:
        writer.write(b"1," * 50_000)
        await writer.drain()


async def flood(agent: "FakeAgent", head: str, reader: Reader, writer: Writer) -> None:
    """Send ticks almost as fast as the client reads them."""
    if "text/event-stream" not in head:
        await healthy(agent, head, reader, writer)
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    body = f"data: {json.dumps(encoded(agent.sample(time.time())))}\n\n".encode()
    while True:
        writer.write(body * 20)
        await writer.drain()
        # Yield to the other agents, which run in the same event loop.
        await asyncio.sleep(0.02)


async def huge_head(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 500) for n in range(500)))
    await writer.drain()


async def not_http(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
    """Respond in a protocol other than HTTP."""
    writer.write(b"220 mail ready \x1b]0;owned\x07\r\n" * 3)
    await writer.drain()


async def hang_up(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
    writer.close()


async def require_password(agent: "FakeAgent", head: str, reader: Reader, writer: Writer) -> None:
    token = base64.b64encode(b"ops:secret").decode()
    if f"Authorization: Basic {token}" in head:
        await healthy(agent, head, reader, writer)
    else:
        await send_json(writer, {"error": "\x1b[2J unauthorized"}, "401 Unauthorized")


def respond_with(body: bytes, status: str = "200 OK", kind: str = "application/json") -> Behaviour:
    """Return a behaviour that sends this response to every request."""

    async def answer(_: "FakeAgent", __: str, ___: Reader, writer: Writer) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


async def send_json(writer: Writer, content: Any, status: str = "200 OK") -> None:
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


class FakeAgent:
    """An agent with a `behaviour` that may be changed at any time."""

    def __init__(self, address: str, behaviour: Behaviour = healthy) -> None:
        self.address = address
        self.behaviour = behaviour
        self.name = address
        self.reads = 1000
        self.peers: list[str] = []
        self.location = ("dc1", "r1")
        self._server: asyncio.Server | None = None
        self._writers: set[Writer] = set()

    def sample(self, time_s: float) -> Sample:
        return replace(
            sample_of(self.name, time_s, reads=self.reads, bucket=40), elapsed_s={"cassandra": 1.0, "cpu": 1.0}
        )

    def node(self) -> dict[str, Any]:
        dc, rack = self.location
        identity = {"node": self.name, "cluster": "Fake", "dc": dc, "rack": rack, "interval_s": 1.0}
        return {**identity, "address": self.address, "peers": self.peers, "source": "jolokia"}

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, self.address, PORT)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    def _accept(self, reader: Reader, writer: Writer) -> Coroutine[Any, Any, None]:
        # A task that is cancelled before it starts closes nothing.
        self._writers.add(writer)
        return self._take(reader, writer)

    async def _take(self, reader: Reader, writer: Writer) -> None:
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await self.behaviour(self, head, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


class FakeAgents:
    """Several agents in one event loop."""

    def __init__(self, *agents: FakeAgent) -> None:
        self.agents = agents
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        for agent in agents:
            self.start(agent)

    def start(self, agent: FakeAgent) -> None:
        asyncio.run_coroutine_threadsafe(agent.open(), self._loop).result(10)

    def stop(self, agent: FakeAgent) -> None:
        """Stop listening and abort the agent's connections."""
        asyncio.run_coroutine_threadsafe(agent.close(), self._loop).result(10)

    def close(self) -> None:
        for agent in self.agents:
            self.stop(agent)

        async def end() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for agent in self.agents:
                # Connections that were accepted while the server closed.
                await agent.close()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

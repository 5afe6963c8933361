"""Simulated agents in one process, each on its own loopback address, with the API paths that `casstat top` uses."""

import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qs, urlsplit

from collector.catalogue import CATALOGUE
from collector.model.histogram import Buckets, upper_bounds_of
from collector.model.metric import Kind, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.sample_json import encoded
from collector.model.snapshot import Tick

PORT = 17199
VARIANTS = 16
OPERATIONS = ("Read", "Write", "RangeSlice", "CASRead", "CASWrite", "ViewWrite")
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
MESSAGES = 25


def addresses(number: int) -> list[str]:
    """Return `number` loopback addresses."""
    return [f"127.0.{200 + index // 250}.{1 + index % 250}" for index in range(number)]


def sample(node: str, time_s: float, generator: random.Random) -> Sample:
    """Return a random one-second sample of a node under load."""
    values: dict[Series, Derived] = {("cassandra_operation_mode",): "NORMAL"}
    for operation in OPERATIONS:
        _operation(
            values, operation, generator.randrange(2000, 6000) if operation in ("Read", "Write") else 0, generator
        )
    for mode in MODES:
        values["casstat_cpu_seconds_total", mode] = Rate(generator.random(), 1.0)
    for number in range(MESSAGES):
        values["cassandra_messages_dropped_total", f"MESSAGE_{number}"] = Rate(0.0, 1.0)
    for metric in CATALOGUE.values():
        for column in metric.columns:
            series = (metric.name, *column.labels)
            if metric.kind is Kind.GAUGE:
                values.setdefault(series, float(generator.randrange(20)))
            elif metric.kind is Kind.COUNTER:
                values.setdefault(series, Rate(0.0, 1.0))
        if metric.labels == ("device",):
            values[metric.name, "nvme0n1"] = Rate(generator.random() * 100, 1.0)
    values["cassandra_jvm_gc_seconds_total", "G1 Young Generation"] = Rate(generator.random() / 50, 1.0)
    values["cassandra_jvm_heap_used_bytes",] = generator.random() * 2**34
    values["cassandra_jvm_heap_max_bytes",] = 2.0**34
    values["cassandra_endpoints_unreachable",] = 0.0
    return Sample(node, Tick(time_s), values, {"cassandra": 1.0, "cpu": 1.0, "disk": 1.0, "network": 1.0})


def _operation(values: dict[Series, Derived], operation: str, count: int, generator: random.Random) -> None:
    counts = [0] * 128
    for _ in range(min(count, 400)):
        counts[min(int(generator.lognormvariate(3.4, 0.15)), 120)] += max(count // 400, 1)
    total = sum(counts)
    values["cassandra_client_requests_total", operation] = Rate(float(total), 1.0)
    values["cassandra_client_request_seconds_total", operation] = Rate(total * 0.0007, 1.0)
    bounds = upper_bounds_of("seconds", 128)
    values["cassandra_client_request_duration_seconds", operation] = Buckets(bounds, tuple(counts))
    for outcome in ("timeouts", "unavailables"):
        values[f"cassandra_client_request_{outcome}_total", operation] = Rate(0.0, 1.0)


class ResponseBodies:
    """The agents' response bodies: a few random samples, reduced to the requested metrics."""

    def __init__(self) -> None:
        generator = random.Random(11)  # noqa: S311
        self._samples = [encoded(sample("node", 0.0, generator)) for _ in range(VARIANTS)]
        self._bodies: dict[tuple[str, ...], list[str]] = {}

    def of(self, node: str, time_s: float, patterns: tuple[str, ...]) -> str:
        """Return the body of a node's sample at `time_s`, with the metrics that match `patterns` (all if empty)."""
        if patterns not in self._bodies:
            self._bodies[patterns] = [self._body(sample, patterns) for sample in self._samples]
        bodies = self._bodies[patterns]
        body = bodies[(hash(node) + int(time_s)) % len(bodies)]
        return f'{{"node":"{node}","tick":{{"time_s":{time_s},"late_s":0.0,"missed":0,"suspended_s":0.0}},{body}'

    def _body(self, sample: dict[str, Any], patterns: Sequence[str]) -> str:
        values = {
            name: rows
            for name, rows in sample["values"].items()
            if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        return json.dumps({"elapsed_s": sample["elapsed_s"], "values": values}, separators=(",", ":"))[1:]


class Agents:
    """Serves the agent API of all nodes."""

    def __init__(self, nodes: Sequence[str], port: int = PORT) -> None:
        self._nodes = list(nodes)
        self._port = port
        self._bodies = ResponseBodies()

    async def serve(self) -> None:
        """Listen on all addresses until cancelled."""
        for node in self._nodes:
            await asyncio.start_server(lambda r, w, node=node: self._answer(node, r, w), node, self._port)  # type: ignore[misc]
        print("serving", flush=True)
        await asyncio.Event().wait()

    async def _answer(self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                url = urlsplit(head.split(" ", 2)[1])
                query = parse_qs(url.query)
                if url.path == "/api/v1/node":
                    peers = self._nodes if node == self._nodes[0] else []
                    self._send(writer, json.dumps({"node": node, "address": node, "peers": peers, **_NODE}))
                elif "text/event-stream" in head:
                    await self._stream(node, writer, tuple(query.get("metric", ())))
                else:
                    body = self._bodies.of(node, float(int(time.time())), tuple(query.get("metric", ())))
                    self._send(writer, f"[{body}]")
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    def _send(self, writer: asyncio.StreamWriter, body: str) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(f"{head}{body}".encode())

    async def _stream(self, node: str, writer: asyncio.StreamWriter, patterns: tuple[str, ...]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        while True:
            due_s = float(int(time.time()) + 1)
            # Real agents send their samples at slightly different times.
            await asyncio.sleep(due_s - time.time() + 0.05 + hash(node) % 100 / 500)
            writer.write(f"id: {due_s}\ndata: {self._bodies.of(node, due_s, patterns)}\n\n".encode())
            await writer.drain()


_NODE = {"cluster": "simulated", "dc": "dc1", "rack": "rack1", "interval_s": 1.0, "source": "jolokia"}

if __name__ == "__main__":
    asyncio.run(Agents(addresses(int(sys.argv[1]))).serve())

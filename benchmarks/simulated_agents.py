"""Simulated agents in one process, each on its own loopback address, with the API paths that `casstat top` uses."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from benchmarks.simulated_recordings import BEGIN_TIME_S
from collector.model.sample_json import encoded
from collector.model.snapshot import JOLOKIA_SOURCE, Sample, Tick
from collector.node.catalogue import CATALOGUE
from collector.node.node_sampler import SampleStream
from collector.simulation.simulated_cluster import CALM, SimulatedNode, simulated_cluster
from exporters.series_selector import SeriesSelection, parse

PORT = 17199
VARIANTS = 16
TABLES = 10


def addresses(number: int) -> list[str]:
    """Return `number` loopback addresses."""
    return [f"127.0.{200 + index // 250}.{1 + index % 250}" for index in range(number)]


def samples() -> list[Sample]:
    """Return a one-second sample of each of VARIANTS simulated nodes."""
    return [_sample(node) for node in simulated_cluster(VARIANTS, TABLES, disturbances=CALM)]


def _sample(node: SimulatedNode) -> Sample:
    stream = SampleStream(CATALOGUE, (JOLOKIA_SOURCE,), paced=False, met=True)
    # Both ticks contain the slow series, so that the sample has all of them.
    ticks = (Tick(BEGIN_TIME_S), Tick(BEGIN_TIME_S + 1))
    (sample,) = stream.samples(node.snapshot(tick, 1.0, first=True) for tick in ticks)
    return sample


class ResponseBodies:
    """The agents' response bodies: the samples of a few simulated nodes, reduced to the requested series."""

    def __init__(self) -> None:
        self._samples = samples()
        self._bodies: dict[tuple[str, ...], list[str]] = {}

    def of(self, node: str, time_s: float, selectors: tuple[str, ...]) -> str:
        """Return the body of a node's sample at `time_s`, with the series that match `selectors` (all if empty)."""
        if selectors not in self._bodies:
            selection = SeriesSelection(map(parse, selectors or ("*",)))
            self._bodies[selectors] = [_body(selection.of(sample)) for sample in self._samples]
        bodies = self._bodies[selectors]
        body = bodies[(hash(node) + int(time_s)) % len(bodies)]
        return f'{{"node":"{node}","tick":{{"time_s":{time_s},"late_s":0.0,"missed":0,"suspended_s":0.0}},{body}'


def _body(sample: Sample) -> str:
    """Return a sample's JSON without the fields that differ between nodes and ticks, and without the opening brace."""
    content = encoded(sample)
    return json.dumps({key: content[key] for key in ("elapsed_s", "values")}, separators=(",", ":"))[1:]


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
                    number = self._nodes.index(node)
                    location = {"dc": f"dc{number % 3}", "rack": f"rack{number % 9}"}
                    content = {"node": node, "address": node, "peers": peers, **location, **_NODE}
                    self._send(writer, json.dumps(content))
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

    async def _stream(self, node: str, writer: asyncio.StreamWriter, selectors: tuple[str, ...]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        while True:
            due_s = float(int(time.time()) + 1)
            # Real agents send their samples at slightly different times.
            await asyncio.sleep(due_s - time.time() + 0.05 + hash(node) % 100 / 500)
            writer.write(f"id: {due_s}\ndata: {self._bodies.of(node, due_s, selectors)}\n\n".encode())
            await writer.drain()


_NODE = {"cluster": "simulated", "interval_s": 1.0, "source": "jolokia"}

if __name__ == "__main__":
    asyncio.run(Agents(addresses(int(sys.argv[1]))).serve())

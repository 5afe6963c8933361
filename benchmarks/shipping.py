"""Points per second sent to a null store, and time to ship one hour of samples to a real InfluxDB."""

import multiprocessing
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event

from benchmarks import simulated_recordings
from benchmarks.figures import Figure
from collector.model.snapshot import Identity
from collector.node.node_sampler import SampleStream
from collector.recording.journal_files import journal_files
from collector.recording.reader import Entry, entries, read
from collector.simulation.simulated_cluster import CALM, simulated_cluster
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.parts.points import rows
from exporters.sinks.shipping.delivery import MAX_POINTS, TIMEOUT_S
from exporters.sinks.shipping.shipper import CPU_SHARE, Plan, Runtime, Shipper, journal_opener
from exporters.sinks.sink import NodeTick
from tests.real.stores import InfluxDB

HOUR_S = 3600
MIN_POINTS = 1e6
MAX_S = 20
ROUNDS = 5
HOST = "127.0.62.5"
# The number of samples written shows that the store knows remote write 2.0.
RESPONSE = b"HTTP/1.1 204 No Content\r\nX-Prometheus-Remote-Write-Samples-Written: 1000000\r\n\r\n"
# Remote write and OTLP send a sample for each of the node's series on every tick.
MIN_WRITTEN, PAGE_TICKS = 3e5, 600
IDENTITY = Identity("cluster", "dc1", "rack1", "node000")


def run() -> Iterator[Figure]:
    """Encode and send an hour of one node's samples to a null store, then ship them to InfluxDB."""
    (node,) = simulated_cluster(1, simulated_recordings.TABLES, disturbances=CALM)
    with tempfile.TemporaryDirectory() as name:
        simulated_recordings.record(node, Path(name), HOUR_S + 1)
        yield from _into_null_store(
            list(entries(record for file in journal_files(Path(name)) for record in read(file)))
        )
        yield from _into_influxdb(Path(name))


def _into_null_store(entries_read: list[Entry]) -> Iterator[Figure]:
    head = entries_read[0].head
    stream = SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met)
    ticks = [NodeTick(head, IDENTITY, entry.snapshot, stream.add(entry.snapshot)) for entry in entries_read]
    samples = [tick.sample for tick in ticks if tick.sample is not None]
    fields = [len(values) for sample in samples for _, values in rows(head.catalogue, sample)]
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    store = multiprocessing.Process(target=_null_store, args=(ports,), daemon=True)
    store.start()
    try:
        port = ports.get()
        sent, send_s = _fastest(f"influxdb+http://{HOST}:{port}/b", ticks)
        yield Figure("encoding and sending to a null store", sent / send_s, "points/s per core", MIN_POINTS, True)
        yield Figure("encoding and sending to a null store, fields", sum(fields) / send_s, "fields/s per core")
        for name, url, bound in (
            ("remote write 2.0", f"prometheus+http://{HOST}:{port}/api/v1/write", MIN_WRITTEN),
            ("OTLP", f"otlp+http://{HOST}:{port}/v1/metrics", None),
        ):
            sent, send_s = _fastest(url, ticks[:PAGE_TICKS])
            yield Figure(
                f"encoding and sending to a null store, {name}", sent / send_s, "samples/s per core", bound, True
            )
    finally:
        store.terminate()
        store.join()


def _fastest(url: str, ticks: Sequence[NodeTick]) -> tuple[int, float]:
    """Return the number of points, and the shortest CPU time of several rounds; see `_sent`."""
    rounds = [_sent(url, ticks) for _ in range(ROUNDS)]
    return min(rounds, key=lambda sent: sent[1])


def _sent(url: str, ticks: Sequence[NodeTick]) -> tuple[int, float]:
    """Encode and send ticks; return the number of points, and the user and system CPU time, without the first tick."""
    with closing(sink_of(url)) as sink:
        first = [point for tick in ticks[:2] for point in sink.encode(tick)]
        sink.send(first, TIMEOUT_S)
        began_s, count = time.process_time(), 0
        points: list[bytes] = []
        for number, tick in enumerate(ticks[2:], 3):
            points += sink.encode(tick)
            if len(points) >= MAX_POINTS or number == len(ticks):
                sink.send(points, TIMEOUT_S)
                count += len(points)
                points = []
        return count, time.process_time() - began_s


def _null_store(ports: "multiprocessing.Queue[int]") -> None:
    """Listen on a free port, put its number on the `ports` queue, and answer every request with status 204."""
    with socket.create_server((HOST, 0)) as listener:
        ports.put(listener.getsockname()[1])
        while True:
            stream, _ = listener.accept()
            with stream, stream.makefile("rb", 1 << 20) as lines:
                while length := _length(lines.readline):
                    lines.read(length)
                    stream.sendall(RESPONSE)


def _length(readline: Callable[[], bytes]) -> int:
    length = 0
    while (line := readline().strip()) or not length:
        if not line:
            return 0
        name, _, value = line.lower().partition(b":")
        length = int(value) if name == b"content-length" else length
    return length


def _into_influxdb(journal: Path) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = InfluxDB(folder / "influxdb")
        store.start()
        try:
            for cpu_share, bound in ((CPU_SHARE, MAX_S), (1.0, None)):
                store.query("DROP DATABASE db")
                store.query("CREATE DATABASE db")
                yield from _ship_hour(store, journal, folder, cpu_share, bound)
        finally:
            store.stop()


def _ship_hour(store: InfluxDB, journal: Path, folder: Path, cpu_share: float, bound: float | None) -> Iterator[Figure]:
    plan = Plan(journal_opener(journal), state_folder=folder / f"kept-{cpu_share}", cpu_share=cpu_share)
    shipper = Shipper(sink_of(store.url), plan, Runtime(Event().wait), print)
    began_s, before_s = time.monotonic(), _process_s()
    while shipper.step():
        pass
    shipper.close()
    wall_s, cpu_s = time.monotonic() - began_s, _process_s() - before_s
    health = shipper.health()
    label = f"{shipper.ticks} ticks, {health.points} points into InfluxDB, CPU limit {100 * cpu_share:g}%"
    yield Figure(f"{label}: points per tick", health.points / shipper.ticks, "points", 1, True)
    yield Figure(label, wall_s, "s", bound)
    yield Figure(f"{label}: CPU", cpu_s, "s")


def _process_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

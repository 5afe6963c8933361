"""Points per second sent to a null store, and time to ship one hour of samples to a real InfluxDB."""

import multiprocessing
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Event

from benchmarks import simulated_recordings
from benchmarks.figures import Figure
from collector.journal.reader import Entry, entries, read
from collector.journal.segments import journal_files
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from collector.sampling.sample_stream import SampleStream
from collector.simulation.lifecycle import CALM
from collector.simulation.simulated_cluster import simulated_cluster
from exporters.shipping.delivery import MAX_POINTS, TIMEOUT_S
from exporters.shipping.runtime import system_runtime
from exporters.shipping.shipper import CPU_SHARE, Plan, Shipper, journal_opener
from exporters.sinks.parts.points import rows
from exporters.sinks.parts.registry import sink_of
from tests.real.stores import InfluxDB

HOUR_S = 3600
MIN_POINTS = 1e6
MAX_S = 20
ROUNDS = 5
HOST = "127.0.62.5"
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


def _into_null_store(ticks: list[Entry]) -> Iterator[Figure]:
    head = ticks[0].head
    snapshots = (entry.snapshot for entry in ticks)
    samples = list(SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met).samples(snapshots))
    fields = [len(values) for sample in samples for _, values in rows(head.catalogue, sample)]
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    store = multiprocessing.Process(target=_null_store, args=(ports,), daemon=True)
    store.start()
    try:
        url = f"influxdb+http://{HOST}:{ports.get()}/b"
        send_s = min(_send_s(url, head.catalogue, samples) for _ in range(ROUNDS))
    finally:
        store.terminate()
        store.join()
    yield Figure("encoding and sending to a null store", len(fields) / send_s, "points/s per core", MIN_POINTS, True)
    yield Figure("encoding and sending to a null store, fields", sum(fields) / send_s, "fields/s per core")


def _send_s(url: str, catalogue: Mapping[str, Metric], samples: list[Sample]) -> float:
    """Return the user and system CPU time for encoding and sending the samples."""
    with closing(sink_of(url)) as sink:
        sink.send([b"warm_up value=1"], TIMEOUT_S)
        began_s = time.process_time()
        points: list[bytes] = []
        for sample in samples:
            points += sink.encode(catalogue, IDENTITY, sample)
            if len(points) >= MAX_POINTS:
                sink.send(points, TIMEOUT_S)
                points = []
        sink.send(points or [b"end value=1"], TIMEOUT_S)
        return time.process_time() - began_s


def _null_store(ports: "multiprocessing.Queue[int]") -> None:
    """Listen on a free port, put its number on the `ports` queue, and answer every request with status 204."""
    with socket.create_server((HOST, 0)) as listener:
        ports.put(listener.getsockname()[1])
        while True:
            stream, _ = listener.accept()
            with stream, stream.makefile("rb", 1 << 20) as lines:
                while length := _length(lines.readline):
                    lines.read(length)
                    stream.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


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
    shipper = Shipper(sink_of(store.url), plan, system_runtime(Event()), print)
    began_s, before_s = time.monotonic(), _process_s()
    shipper.run(until_end=True)
    wall_s, cpu_s = time.monotonic() - began_s, _process_s() - before_s
    health = shipper.health()
    label = f"{shipper.ticks} ticks, {health.points} points into InfluxDB, CPU limit {100 * cpu_share:g}%"
    yield Figure(label, wall_s, "s", bound)
    yield Figure(f"{label}: CPU", cpu_s, "s")


def _process_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

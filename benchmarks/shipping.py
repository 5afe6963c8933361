"""Shipper: points a second to a store that does nothing, and catching up with an hour into a real InfluxDB."""

import multiprocessing
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Event

from benchmarks import recorded, synthesised
from benchmarks.figures import Figure
from collector.journal.reader import Entry, entries, read
from collector.journal.segments import journal_files
from collector.journal.writer import Journal, Limits
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from collector.sampling.sample_stream import SampleStream
from exporters.shipping.delivery import MOST_POINTS, TIMEOUT_S
from exporters.shipping.runtime import system_runtime
from exporters.shipping.shipper import CPU_SHARE, Plan, Shipper, journal_opener
from exporters.sinks.parts.points import rows
from exporters.sinks.parts.registry import sink_of
from tests.real.stores import InfluxDB

HOUR = 3600
LEAST_POINTS = 1e6
MOST_S = 20
ROUNDS = 5
HOST = "127.0.62.5"
WHO = Identity("cluster", "dc1", "rack1", "node000")


def run() -> Iterator[Figure]:
    """Encode and send a node's samples, then bring an hour of it into InfluxDB."""
    source = synthesised.pattern(recorded.under_load())
    with tempfile.TemporaryDirectory() as name:
        with closing(Journal(Path(name), lambda: source.head, Limits(sync="never"), print)) as journal:
            for snapshot in source.node(WHO.node, 0, HOUR + 1):
                journal.append(snapshot)
        yield from _to_nothing(list(entries(each for file in journal_files(Path(name)) for each in read(file))))
        yield from _into_influxdb(Path(name))


def _to_nothing(found: list[Entry]) -> Iterator[Figure]:
    head = found[0].head
    snapshots = (entry.snapshot for entry in found)
    taken = list(SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met).samples(snapshots))
    fields = [len(each) for sample in taken for _, each in rows(head.catalogue, sample)]
    begun: multiprocessing.Queue[int] = multiprocessing.Queue()
    store = multiprocessing.Process(target=_nothing, args=(begun,), daemon=True)
    store.start()
    try:
        url = f"influxdb+http://{HOST}:{begun.get()}/b"
        each_s = min(_sent_s(url, head.catalogue, taken) for _ in range(ROUNDS))
    finally:
        store.terminate()
        store.join()
    yield Figure(
        "encoding and sending to nothing", len(fields) / each_s, "points a second and core", LEAST_POINTS, True
    )
    yield Figure("the same", sum(fields) / each_s, "fields a second and core")


def _sent_s(url: str, catalogue: Mapping[str, Metric], taken: list[Sample]) -> float:
    """Return the CPU time, the system's for this process included, that sending takes."""
    with closing(sink_of(url)) as sink:
        sink.send([b"warm up=1"], TIMEOUT_S)
        began_s = time.process_time()
        points: list[bytes] = []
        for sample in taken:
            points += sink.encode(catalogue, WHO, sample)
            if len(points) >= MOST_POINTS:
                sink.send(points, TIMEOUT_S)
                points = []
        sink.send(points or [b"nothing left=1"], TIMEOUT_S)
        return time.process_time() - began_s


def _nothing(begun: "multiprocessing.Queue[int]") -> None:
    """Take every request and answer that it is well."""
    with socket.create_server((HOST, 0)) as listener:
        begun.put(listener.getsockname()[1])
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
            for cpu_share, bound in ((CPU_SHARE, MOST_S), (1.0, None)):
                store.query("DROP DATABASE db")
                store.query("CREATE DATABASE db")
                yield from _caught_up(store, journal, folder, cpu_share, bound)
        finally:
            store.stop()


def _caught_up(store: InfluxDB, journal: Path, folder: Path, cpu_share: float, bound: float | None) -> Iterator[Figure]:
    plan = Plan(journal_opener(journal), state_folder=folder / f"kept-{cpu_share}", cpu_share=cpu_share)
    shipping = Shipper(sink_of(store.url), plan, system_runtime(Event()), print)
    began_s, before_s = time.monotonic(), _own_s()
    shipping.run(until_end=True)
    wall_s, cpu_s = time.monotonic() - began_s, _own_s() - before_s
    health = shipping.health()
    what = f"{shipping.ticks} ticks, {health.points} points into InfluxDB, at most {cpu_share:g} of a core"
    yield Figure(what, wall_s, "s", bound)
    yield Figure(f"{what}: CPU", cpu_s, "s")


def _own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

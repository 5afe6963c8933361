"""Three agents of a real cluster push to a real OpenTelemetry Collector through an outage and a SIGKILL of an agent.

The Collector is stopped for two minutes; meanwhile, an agent is killed and started again. What the Collector forwards
must be what uninterrupted agents would have sent: each data point of each recorded tick, and none twice with different
values. Needs Go to build the Collector from its modules.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import NamedTuple

from acceptance.outage import NODES, OUTAGE_S, agents_through_an_outage, cluster
from cli.setup.demo.demo_cluster import cache_folder
from collector.recording.journal_files import journal_files
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.otlp import OtlpFormat, request
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.tick_encoder import PageSink, SeriesPoint
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper
from exporters.sinks.shipping.tick_queue import RecordingReader
from tests.exporters.sinks.otlp.otlp_messages import Attributes, DataPoint, decode
from tests.faults.otlp_receiver import OtlpReceiver
from tests.ports import free_port

VERSION, STABLE_VERSION = "v0.165.0", "v1.71.0"
COLLECTOR = "go.opentelemetry.io/collector"
MODULES = {
    "component": STABLE_VERSION,
    "confmap": STABLE_VERSION,
    "confmap/provider/fileprovider": STABLE_VERSION,
    "exporter": STABLE_VERSION,
    "exporter/otlphttpexporter": VERSION,
    "otelcol": VERSION,
    "receiver": STABLE_VERSION,
    "receiver/otlpreceiver": VERSION,
    "service": VERSION,
}
MAIN = dedent("""\
    package main

    import (
        "log"

        "go.opentelemetry.io/collector/component"
        "go.opentelemetry.io/collector/confmap"
        "go.opentelemetry.io/collector/confmap/provider/fileprovider"
        "go.opentelemetry.io/collector/exporter"
        "go.opentelemetry.io/collector/exporter/otlphttpexporter"
        "go.opentelemetry.io/collector/otelcol"
        "go.opentelemetry.io/collector/receiver"
        "go.opentelemetry.io/collector/receiver/otlpreceiver"
        "go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
    )

    func factories() (otelcol.Factories, error) {
        receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
        if err != nil {
            return otelcol.Factories{}, err
        }
        exporters, err := otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
        telemetry := otelconftelemetry.NewFactory()
        return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: telemetry}, err
    }

    func main() {
        providers := []confmap.ProviderFactory{fileprovider.NewFactory()}
        settings := otelcol.CollectorSettings{
            BuildInfo:              component.BuildInfo{Command: "otelcol"},
            Factories:              factories,
            ConfigProviderSettings: otelcol.ConfigProviderSettings{
                ResolverSettings: confmap.ResolverSettings{ProviderFactories: providers, DefaultScheme: "file"},
            },
        }
        if err := otelcol.NewCommand(settings).Execute(); err != nil {
            log.Fatal(err)
        }
    }
""")
HOST = "127.0.62.9"
# Self-metrics that are not in the journal.
NOT_RECORDED = ("process.", "casstat.sink_", "casstat.journal", "casstat.run_")


class PointKey(NamedTuple):
    """Identifies a data point."""

    name: str
    resource: Attributes
    attributes: Attributes
    time_ms: int


def collector_program() -> Path:
    """Return the path of the Collector; build it if it does not exist."""
    folder = cache_folder(os.environ) / "otel-collector"
    if not (folder / "otelcol").exists():
        with TemporaryDirectory() as name:
            source = Path(name)
            required = "".join(f"require {COLLECTOR}/{module} {version}\n" for module, version in MODULES.items())
            (source / "go.mod").write_text(f"module otelcol\n\ngo 1.25\n\n{required}")
            (source / "main.go").write_text(MAIN)
            subprocess.run(["/usr/bin/env", "go", "mod", "tidy"], cwd=source, check=True)
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["nice", "go", "build", "-o", str(folder / "otelcol"), "."], cwd=source, check=True)  # noqa: S607
    return folder / "otelcol"


@contextmanager
def collector(folder: Path, port: int, forward_to: str) -> Iterator[None]:
    """Run a Collector that accepts a request only once it has forwarded the data points."""
    settings = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{HOST}:{port}"}}}},
        "exporters": {
            "otlp_http": {
                "metrics_endpoint": forward_to,
                "sending_queue": {"enabled": False},
                "retry_on_failure": {"enabled": False},
            }
        },
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["otlp_http"]}},
        },
    }
    # JSON is valid YAML.
    (folder / "collector.yml").write_text(json.dumps(settings))
    command = [str(collector_program()), "--config", f"{folder}/collector.yml"]
    with (
        (folder / "collector.node.log").open("ab") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


class _Expected(PageSink):
    """Keeps the data points."""

    def __init__(self) -> None:
        super().__init__(Target("fake", "receiver", None, "", {}), OtlpFormat(), Options())
        self.points: list[DataPoint] = []

    def text(self, point: SeriesPoint) -> bytes:
        return repr(point).encode()

    def send(self, points: Sequence[SeriesPoint], timeout_s: float) -> None:
        self.points += decode(request(points))


def expected(journal: Path) -> list[DataPoint]:
    """Return the data points that an uninterrupted agent would have sent."""
    sink = _Expected()
    runtime = Runtime(lambda _: False, time.monotonic, time.time, time.process_time, lambda: 0.5)
    shipping = Shipper(sink, Plan(lambda _: RecordingReader(journal_files(journal)), cpu_share=1.0), runtime, print)
    while shipping.step():
        pass
    shipping.close()
    return sink.points


def by_key(points: Iterable[DataPoint]) -> dict[PointKey, object]:
    """Return the values of the data points that the journal contains, without those that end a series."""
    return {
        PointKey(point.name, point.resource, point.attributes, point.time_ms): (point.kind, point.start_ms, point.value)
        for point in points
        if point.value is not None and not point.name.startswith(NOT_RECORDED)
    }


def compare(node: str, journal: Path, received: Mapping[PointKey, object]) -> bool:
    """Print the comparison of a node's data points with those of its journal; return whether they are the same."""
    stored = {key: value for key, value in received.items() if ("service.instance.id", node) in key.resource}
    # The last tick may not have been sent before the agent stopped.
    last_ms = max((key.time_ms for key in stored), default=0)
    wanted = {key: value for key, value in by_key(expected(journal)).items() if key.time_ms <= last_ms}
    ticks = len({key.time_ms for key in wanted})
    different = [key for key in wanted.keys() | stored.keys() if wanted.get(key) != stored.get(key)]
    print(f"{node}: {ticks} ticks, {len(wanted)} data points, {len(different)} of them different", flush=True)
    print(f"  {', '.join(sorted({key.name for key in different})) or 'none'}")
    for key in different[:5]:
        print(f"  {key}: {stored.get(key)} instead of {wanted.get(key)}")
    return not different and ticks > OUTAGE_S


def main() -> int:
    """Run everything and print the comparison; return 1 if something is wrong."""
    collector_program()
    with TemporaryDirectory() as name, cluster(Path(name, "demo")), closing(OtlpReceiver()) as receiver:
        folder, port = Path(name), free_port(HOST)
        journals = {node: folder / "journals" / node for node in NODES}
        url = f"otlp+http://{HOST}:{port}/v1/metrics"
        server = partial(collector, folder, port, receiver.url.removeprefix("otlp+"))
        agents_through_an_outage(journals, url, server, os.environ)
        received = by_key(receiver.points.values())
        are_same = [compare(node, journal, received) for node, journal in journals.items()]
        print(f"data points received again with another value: {len(receiver.conflicts)}")
        if not all(are_same):
            print((folder / "collector.node.log").read_text(errors="replace")[-2000:])
    return int(not all(are_same) or bool(receiver.conflicts))


if __name__ == "__main__":
    sys.exit(main())

"""Real time series stores on loopback, built or installed once, and their query APIs."""

import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cli.setup.demo.demo_cluster import cache_folder
from tests.ports import free_port
from tests.waiting import eventually

INFLUXD = "github.com/influxdata/influxdb/cmd/influxd@v1.8.10"
HOST = "127.0.62.4"
BUILD_S, START_S, STOP_S = 1200.0, 60.0, 120.0
# The fields, keyed by series name and then by time in milliseconds.
Points = dict[str, dict[int, dict[str, float]]]


def influxd() -> Path:
    """Return the path of the InfluxDB 1.8 server; build it if it does not exist."""
    folder = cache_folder(os.environ) / "influxdb-1.8.10"
    program = folder / "influxd"
    if not program.exists():
        unfinished = folder.with_name(f".{folder.name}-{os.getpid()}")
        unfinished.mkdir(parents=True)
        environ = {**os.environ, "GOBIN": str(unfinished)}
        subprocess.run(["/usr/bin/env", "go", "install", INFLUXD], check=True, env=environ, timeout=BUILD_S)
        folder.mkdir(exist_ok=True)
        (unfinished / "influxd").replace(program)
        unfinished.rmdir()
    return program


def fetched(url: str, data: bytes | None = None) -> bytes:
    """Send a GET request, or a POST request with `data`, and return the body of the response."""
    with urllib.request.urlopen(url, data, timeout=60) as answer:  # noqa: S310 - loopback
        return bytes(answer.read())


class StoreProcess:
    """A store that can be stopped and started again with its data."""

    def __init__(self, command: Sequence[str | Path], log: Path, is_up: Callable[[], bool]) -> None:
        self._command = [str(word) for word in command]
        self._log = log
        self._is_up = is_up
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        eventually(self._answers, START_S)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                # It would lose what it has not written yet, and a test would look for the samples elsewhere.
                process.kill()
                process.wait()
                raise

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-2000:]
        with suppress(OSError):
            return self._is_up()
        return False


class InfluxDB(StoreProcess):
    """A single-node InfluxDB 1.8."""

    def __init__(self, folder: Path, more_settings: Mapping[str, str] = {}) -> None:
        self._port = free_port(HOST)
        self.address = f"http://{HOST}:{self._port}"
        self.url = f"influxdb+{self.address}/db/autogen"
        folder.mkdir()
        settings = {
            "INFLUXDB_REPORTING_DISABLED": "true",
            "INFLUXDB_BIND_ADDRESS": f"{HOST}:{free_port(HOST)}",
            "INFLUXDB_META_DIR": folder / "meta",
            "INFLUXDB_DATA_DIR": folder / "data",
            "INFLUXDB_DATA_WAL_DIR": folder / "wal",
            "INFLUXDB_HTTP_BIND_ADDRESS": f"{HOST}:{self._port}",
            "INFLUXDB_HTTP_LOG_ENABLED": "false",
            "INFLUXDB_MONITOR_STORE_ENABLED": "false",
            **more_settings,
        }
        environ = [f"{name}={value}" for name, value in settings.items()]
        command: list[str | Path] = ["/usr/bin/env", *environ, influxd(), "run", "-config", "/dev/null"]
        super().__init__(command, folder / "log", lambda: fetched(f"{self.address}/ping") == b"")

    def start(self) -> None:
        super().start()
        self.query("CREATE DATABASE db")

    def query(self, text: str) -> Any:
        answer = fetched(f"{self.address}/query", urlencode({"db": "db", "epoch": "ms", "q": text}).encode())
        return json.loads(answer)["results"][0]

    def points(self) -> Points:
        points: Points = {}
        for series in self.query("SELECT * FROM /.*/ GROUP BY *").get("series", ()):
            times = points.setdefault(name(series["name"], series["tags"]), {})
            for time_ms, *values in series["values"]:
                fields = zip(series["columns"][1:], values, strict=True)
                assert time_ms not in times
                # Leave out text fields, which are not compared, and fields that the point does not have.
                times[time_ms] = {field: value for field, value in fields if not isinstance(value, str | None)}
        return points


class VictoriaMetrics(StoreProcess):
    """Single-node VictoriaMetrics. With `jobs`, it also scrapes targets, like Prometheus.

    Without `dedup`, it keeps every sample of a series, even if two have the same time.
    """

    def __init__(
        self, folder: Path, jobs: Mapping[str, Mapping[str, Any]] | None = None, *, dedup: bool = True
    ) -> None:
        port, graphite = free_port(HOST), free_port(HOST)
        self.address = f"http://{HOST}:{port}"
        self.url = f"influxdb+{self.address}/db"
        self.write_url = f"prometheus+{self.address}/api/v1/write"
        self.graphite_url = f"graphite://{HOST}:{graphite}/casstat?tags=1"
        folder.mkdir()
        command = ["/usr/bin/env", "victoria-metrics", f"-storageDataPath={folder}/data", "-retentionPeriod=100y"]
        # By default, queries ignore the last 30 s.
        command += ["-search.latencyOffset=0s"]
        # Points that are sent again after a lost response must be counted only once.
        command += ["-dedup.minScrapeInterval=1ms"] if dedup else []
        command += [f"-httpListenAddr={HOST}:{port}", f"-graphiteListenAddr={HOST}:{graphite}"]
        if jobs:
            (folder / "scrape.yml").write_text(scrape_config(jobs))
            command += [f"-promscrape.config={folder}/scrape.yml"]
        super().__init__(command, folder / "log", lambda: fetched(f"{self.address}/health") == b"OK")

    def points(self) -> dict[str, dict[int, float]]:
        """Return the values, keyed by series (whose metric name includes the field), then by time in milliseconds."""
        points: dict[str, dict[int, float]] = {}
        for labels, values in self.series():
            metric = labels.pop("__name__")
            labels.pop("db", None)
            # VictoriaMetrics does not store text, so this field is not compared.
            if metric != "casstat_events_text":
                points[name(metric, labels)] = values
        return points

    def series(self, selector: str = '{__name__!=""}') -> Iterator[tuple[dict[str, str], dict[int, float]]]:
        """Yield the labels of each series, and its values by time in milliseconds."""
        fetched(f"{self.address}/internal/force_flush")
        for line in fetched(f"{self.address}/api/v1/export?" + urlencode({"match[]": selector})).splitlines():
            series = json.loads(line)
            pairs = set(zip(series["timestamps"], series["values"], strict=True))
            # A time occurs only once, unless the same sample was sent again.
            assert len(dict(pairs)) == len(pairs)
            # The mark at the end of a series is exported as null; as NaN if it replaces the first sample of the series,
            # because the next scrape failed.
            yield (
                series["metric"],
                {time_ms: value for time_ms, value in pairs if value is not None and not isnan(value)},
            )


def scrape_config(jobs: Mapping[str, Mapping[str, Any]], **more: Any) -> str:
    """Return a Prometheus configuration that scrapes the jobs every second."""
    scraped = [{"job_name": name, **job} for name, job in jobs.items()]
    # JSON is valid YAML.
    return json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": scraped, **more})


CARBON = """[cache]
STORAGE_DIR = {folder}
LOCAL_DATA_DIR = {folder}/whisper
CONF_DIR = {folder}
LOG_DIR = {folder}
PID_DIR = {folder}
USER =
MAX_UPDATES_PER_SECOND = 100000
MAX_CREATES_PER_MINUTE = 100000
LINE_RECEIVER_INTERFACE = {host}
LINE_RECEIVER_PORT = {port}
PICKLE_RECEIVER_INTERFACE = {host}
PICKLE_RECEIVER_PORT = {pickle}
CACHE_QUERY_INTERFACE = {host}
CACHE_QUERY_PORT = {query}
"""
# The whisper library is installed for the system's Python, not in the tests' environment.
FETCH = """
import json, sys, whisper
values_by_path = {}
for path in sys.argv[1:]:
    (begin, end, step), values = whisper.fetch(path, 0)
    values_by_path[path] = {begin + index * step: value for index, value in enumerate(values) if value is not None}
print(json.dumps(values_by_path))
"""


class Carbon(StoreProcess):
    """Graphite's carbon-cache with a resolution of one second and a retention of one hour."""

    def __init__(self, folder: Path) -> None:
        port = free_port(HOST)
        self.url = f"graphite://{HOST}:{port}/casstat"
        self._folder = folder
        folder.mkdir()
        folder.chmod(0o777)
        text = CARBON.format(folder=folder, host=HOST, port=port, pickle=free_port(HOST), query=free_port(HOST))
        (folder / "carbon.conf").write_text(text)
        (folder / "storage-schemas.conf").write_text("[all]\npattern = .*\nretentions = 1s:1h\n")
        command = ["/usr/bin/env", "carbon-cache", "--nodaemon", f"--config={folder}/carbon.conf", "start"]
        super().__init__(command, folder / "log", lambda: _listens(port))

    def points(self) -> dict[str, dict[int, float]]:
        """Return the values on disk, keyed by dotted series name and then by time in seconds."""
        whisper = self._folder / "whisper" / "casstat"
        files = sorted(whisper.rglob("*.wsp")) if whisper.exists() else []
        result = subprocess.run(["/usr/bin/python3", "-c", FETCH, *files], capture_output=True, text=True, check=True)
        values_by_path = json.loads(result.stdout)
        names = {str(path): ".".join(path.relative_to(whisper.parent).with_suffix("").parts) for path in files}
        return {
            names[path]: {int(at): value for at, value in values.items()} for path, values in values_by_path.items()
        }


def _listens(port: int) -> bool:
    with socket.create_connection((HOST, port), 1):
        return True


def name(metric: str, labels: dict[str, str]) -> str:
    """Return a metric's name followed by its non-empty labels in sorted order."""
    return f"{metric} {sorted((key, value) for key, value in labels.items() if value)}"

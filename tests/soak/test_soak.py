"""An agent with one fault after another: its resource usage does not grow, and every lost tick is reported."""

import resource
import signal
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.faults import faults
from tests.faults.agents import RunningAgent
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_store import FakeStore, black_hole, hang_up, status
from tests.soak.pace import FAULTS, Pace
from tests.soak.recorded import expected

INTERVAL_S = 0.5
READS_PER_S = 50
# Allow for variation in the memory that Python's allocator uses.
SLACK, SLACK_BYTES = 1.04, 1 << 20


@dataclass(frozen=True)
class Resources:
    """The agent's resource usage while no fault is active."""

    rss: int
    threads: int
    descriptors: int


class Soak:
    """The agent, its node and its store, with methods that cause faults."""

    def __init__(self, agent: RunningAgent, node: FakeJolokia, store: FakeStore, settings: Path, pace: Pace) -> None:
        self.agent = agent
        self.node = node
        self.store = store
        self.settings = settings
        self.pace = pace
        self.process = psutil.Process(agent.pid)
        self.measurements: list[Resources] = []

    def measure(self) -> Resources:
        with self.process.oneshot():
            return Resources(self.process.memory_info().rss, self.process.num_threads(), self.process.num_fds())

    def cause(self, number: int) -> None:
        """Cause the fault of round `number`, and end it after a while."""
        fault: Callable[[], None] = getattr(self, FAULTS[number % len(FAULTS)])
        fault()

    def store_fails(self) -> None:
        self._store(status(500))

    def store_hangs_up(self) -> None:
        self._store(hang_up)

    def store_is_a_black_hole(self) -> None:
        self._store(black_hole)

    def store_is_busy(self) -> None:
        self._store(status(429, "Retry-After: 2"))

    def _store(self, answer: Callable[[socket.socket], None]) -> None:
        self.store.always = answer
        _pause(self.pace.fault_s)
        self.store.always = None

    def node_hangs(self) -> None:
        self.node.fault = faults.hang
        _pause(self.pace.fault_s)
        self.node.fault = None
        self.node.drop_connections()

    def node_restarts(self) -> None:
        for _ in range(5):
            self.node.node.restart()
            _pause(self.pace.fault_s / 5)

    def node_goes(self) -> None:
        self.node.stop()
        _pause(self.pace.fault_s)
        self.node.start()

    def strangers(self) -> None:
        """Open many connections that send nothing or garbage."""
        host, _, port = self.agent.base.removeprefix("http://").partition(":")
        with ExitStack() as stack:
            for number in range(600):
                with suppress(OSError):
                    stream = stack.enter_context(socket.create_connection((host, int(port)), 5))
                    if number % 3 == 0:
                        stream.sendall(b"\x16\x03 nonsense\r\n\r\n" * 20)
            _pause(self.pace.fault_s)

    def disk_is_full(self) -> None:
        before = resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE, (1, before[1]))
        _pause(self.pace.fault_s)
        resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE, before)

    def settings_change(self) -> None:
        for limit in (500, 5000):
            self.settings.write_text(f"series_limit = {limit}\n")
            self.agent.send(signal.SIGHUP)
            _pause(self.pace.fault_s / 2)

    def agent_is_stopped(self) -> None:
        self.agent.send(signal.SIGSTOP)
        _pause(self.pace.fault_s / 4)
        self.agent.send(signal.SIGCONT)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def test_resources_do_not_grow_and_every_lost_tick_is_reported(fake: FakeJolokia, tmp_path: Path, pace: Pace) -> None:
    store, settings, over = FakeStore(), tmp_path / "agent.toml", threading.Event()
    settings.write_text("")

    def work() -> None:
        while not over.wait(0.1):
            fake.node.do_reads(READS_PER_S // 10)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    given = ["--config", str(settings), "--jolokia", fake.url, "-i", str(INTERVAL_S)]
    given += ["--to", f"influxdb+http://127.0.62.3:{store.port}/db"]
    with RunningAgent(tmp_path / "journal", *given) as agent:
        agent.wait_until_serving()
        soak = Soak(agent, fake, store, settings, pace)
        began_s = time.monotonic()
        for number in range(pace.rounds):
            soak.cause(number)
            # Scrape regularly, as Prometheus does.
            ends_s = began_s + pace.round_s * (number + 1)
            while time.monotonic() < ends_s:
                agent.series()
                _pause(min(5.0, max(ends_s - time.monotonic(), 0.1)))
            soak.measurements.append(soak.measure())
        # A tick is shipped a moment after its page is rendered.
        agent.until(lambda: max(agent.values("casstat_sink_lag_seconds")) <= INTERVAL_S)
        shown = agent.series()
        agent.end(signal.SIGTERM)
        entries = agent.entries()
    over.set()
    worker.join()
    store.close()
    sys.stdout.write("".join(f"\n{measurements}" for measurements in soak.measurements))
    check_growth(soak.measurements)
    # Every tick that was due is in the journal, or was reported as missed by the agent or lost by the journal.
    times = [entry.snapshot.tick.time_s for entry in entries]
    points = round((times[-1] - times[0]) / INTERVAL_S) + 1
    missed = sum(entry.snapshot.tick.missed for entry in entries)
    assert points - len(times) - missed == total(shown, "casstat_journal_lost_ticks_total")
    assert len(set(times)) == len(times)
    assert total(shown, "casstat_ticks_missed_total") == missed
    # Up to the latest tick that it received, the store has all ticks in the journal; it may also have ticks that the
    # journal lost. If it received a point more than once, the copies are equal.
    sent = {int(line.rpartition(b" ")[2]) // 1_000_000 for line in store.accepted_lines}
    has = {at_ms for times in expected(tmp_path / "journal").values() for at_ms in times}
    assert {at_ms for at_ms in has if at_ms <= max(sent)} <= sent
    assert len(set(store.accepted_lines)) == len(set(map(point, store.accepted_lines)))
    assert total(shown, "casstat_sink_lost_ticks_total") == 0
    assert total(shown, "casstat_sink_refused_points_total") == 0


def point(line: bytes) -> tuple[bytes, bytes]:
    """Return a line's series and time; the fields between them contain no spaces."""
    series, _, time_ns = line.rsplit(b" ", 2)
    return series, time_ns


def total(shown: dict[str, float], metric: str) -> float:
    return sum(value for series, value in shown.items() if series.partition("{")[0] == metric)


def check_growth(measurements: list[Resources]) -> None:
    """Assert that resource usage has not grown since round 10, or since round 4 in a short run."""
    warm = 10 if len(measurements) > 20 else 4
    begin, end = measurements[warm - 3 : warm], measurements[-3:]
    assert statistics.median(used.rss for used in end) <= SLACK * max(used.rss for used in begin) + SLACK_BYTES
    assert min(used.threads for used in end) <= max(used.threads for used in begin)
    assert min(used.descriptors for used in end) <= max(used.descriptors for used in begin)

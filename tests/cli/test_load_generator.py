"""The demo's load ends on time, whatever its rate, and when its counts cannot be written."""

import threading
from pathlib import Path

import pytest

from cli.setup.demo.load_generator import Counts, Load, main


class SlowLoad(Load):
    """A load without a cluster, on simulated time; each operation takes a millisecond."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(1000)
        self.now_s = 100.0
        self.sent = 0

    def _send(self, is_read: bool, due_s: float) -> None:
        self.sent += 1
        self.now_s += 0.001


class SimulatedStop(threading.Event):
    """An event that is never set, for which waiting advances the simulated time."""

    def __init__(self, load: SlowLoad) -> None:
        super().__init__()
        self._load = load

    def wait(self, timeout: float | None = None) -> bool:
        self._load.now_s += timeout or 0.0
        return False


@pytest.mark.parametrize(("rate", "expected"), [(100.0, 200), (900.0, 1800), (1e6, 2000)])
def test_a_load_ends_after_the_given_time(monkeypatch: pytest.MonkeyPatch, rate: float, expected: int) -> None:
    load = SlowLoad()
    monkeypatch.setattr("cli.setup.demo.load_generator.time.monotonic", lambda: load.now_s)
    monkeypatch.setattr("cli.setup.demo.load_generator.MAX_IN_FLIGHT", 1000)
    load.run(rate, 2.0, SimulatedStop(load))
    assert load.now_s - 100.0 == pytest.approx(2.0, abs=0.05)
    assert load.sent == pytest.approx(expected, rel=0.05)


class EndlessLoad(Load):
    """A load without a cluster, which sends nothing until it is stopped."""

    results = None

    def __init__(self, *_: object, **__: object) -> None:
        self.counts = Counts()
        self.results = None
        self.events: list[str] = []

    def run(self, rate: float, seconds: float, stop: threading.Event, *, reads: float = 0.5) -> None:
        self.events.append("stopped" if stop.wait(60) else "timed out")

    def close(self) -> None:
        self.events.append("closed")


def test_a_load_whose_counts_cannot_be_written_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = EndlessLoad()
    monkeypatch.setattr("cli.setup.demo.load_generator.Load", lambda *_, **__: load)
    monkeypatch.setattr("cli.setup.demo.load_generator.COUNTS_EVERY_S", 0.01)
    monkeypatch.setattr("cli.setup.demo.load_generator.signal.signal", lambda *_: None)
    counts = tmp_path / "absent" / "counts.json"
    with pytest.raises(SystemExit) as ended:
        main(["127.0.0.1", "--counts", str(counts)])
    assert ended.value.code == f"{counts.with_suffix('.new')}: No such file or directory"
    assert load.events == ["stopped", "closed"]

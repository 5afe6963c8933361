"""The demo's load ends on time, whatever its rate."""

import threading

import pytest

from cli.demo.load_generator import Load


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
    monkeypatch.setattr("cli.demo.load_generator.time.monotonic", lambda: load.now_s)
    monkeypatch.setattr("cli.demo.load_generator.MAX_IN_FLIGHT", 1000)
    load.run(rate, 2.0, SimulatedStop(load))
    assert load.now_s - 100.0 == pytest.approx(2.0, abs=0.05)
    assert load.sent == pytest.approx(expected, rel=0.05)

"""A sink whose parameters change continues where the former one ended."""

import threading
from collections.abc import Callable
from typing import Any, cast

from cli.agent.sink_threads import Sinks
from collector.model.snapshot import Identity
from collector.recording.writer import Position
from exporters.metrics_page.self_metrics import SinkHealth
from exporters.sinks.shipping.shipper import Plan, Shipper
from exporters.sinks.sink import Sink
from tests.waiting import eventually

START = Position("journal", 0)


class SlowShipper:
    """Its last request ends only when `answered` is set."""

    exports_page = True

    def __init__(self, name: str, stop: threading.Event, history: list[str]) -> None:
        self.name, self.answered = name, threading.Event()
        self._stop, self._history = stop, history
        history.append("created")

    def run(self) -> None:
        self._stop.wait()
        self.answered.wait()
        self._history.append("ended")

    def health(self) -> SinkHealth:
        return SinkHealth(self.name)


def sinks_of(shippers: list[SlowShipper], history: list[str]) -> Sinks:
    def create(sink: Sink[Any], _plan: Plan, stop: threading.Event, _log: Callable[[str], None]) -> Shipper:
        shippers.append(SlowShipper(sink.name, stop, history))
        return cast(Shipper, shippers[-1])

    return Sinks(Plan(lambda _: NotImplemented), print, create)


def test_a_changed_sink_starts_when_the_last_request_of_the_former_one_has_ended() -> None:
    shippers, history = list[SlowShipper](), list[str]()
    sinks = sinks_of(shippers, history)
    sinks.change(["prometheus+http://h:1/api/v1/write"], START, Identity())
    sinks.change(["prometheus+http://h:1/api/v1/write?interval_s=15"], START, Identity())
    (health,) = sinks.health()
    assert health.name == shippers[0].name
    assert history == ["created"]
    shippers[0].answered.set()
    eventually(lambda: len(shippers) == 2)
    assert history == ["created", "ended", "created"]
    shippers[1].answered.set()
    sinks.close()


def test_a_sink_that_is_removed_and_added_again_waits_too() -> None:
    shippers, history = list[SlowShipper](), list[str]()
    sinks = sinks_of(shippers, history)
    url = "prometheus+http://h:1/api/v1/write"
    sinks.change([url], START, Identity())
    sinks.change([], START, Identity())
    assert sinks.health() == ()
    sinks.change([url], START, Identity())
    sinks.change([], START, Identity())
    sinks.change([url], START, Identity())
    shippers[0].answered.set()
    eventually(lambda: len(shippers) == 2)
    # The second one was stopped before it began.
    assert history == ["created", "ended", "created"]
    shippers[1].answered.set()
    sinks.close()


def test_other_sinks_start_at_once() -> None:
    shippers, history = list[SlowShipper](), list[str]()
    sinks = sinks_of(shippers, history)
    sinks.change(["prometheus+http://h:1/api/v1/write"], START, Identity())
    sinks.change(["prometheus+http://h:2/api/v1/write"], START, Identity())
    eventually(lambda: history == ["created", "created"])
    for shipper in shippers:
        shipper.answered.set()
    sinks.close()

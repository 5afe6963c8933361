"""The wait after a step until the cluster is as idle as before the first one."""

from array import array
from collections.abc import Iterator, Sequence
from math import nan
from typing import NoReturn

import pytest

from cli.experiments.capacity_steps import Settling
from collector.http.access import Access
from collector.live.live_cluster import Plan
from exporters.live.frame import Frame, History, LiveFrames
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS


def connect(_: str) -> NoReturn:
    raise AssertionError("nothing is connected")


PLAN = Plan((), (), 1.0, lambda _: Access(), None, connect)


class Replayed(History):
    """A history that gets its next frame when somebody waits for it, and none after the last one."""

    def __init__(self, pending: Iterator[float | None]) -> None:
        super().__init__()
        self._pending = pending

    def wait(self, number: int, timeout_s: float) -> bool:
        for compactions in self._pending:
            self.add(frame(compactions))
            break
        return super().wait(number, 0.0)


def frame(compactions: float | None) -> Frame:
    """Return a frame with this number of pending compactions, and nothing else."""
    cells = array("d", [nan] * len(COLUMNS))
    if compactions is not None:
        cells[COLUMN_INDEX["compactions_pending"]] = compactions
    return Frame(0.0, 1.0, "", (), cells, 0)


class Frames(LiveFrames):
    """Frames of a cluster; `stopped` counts how often they were stopped."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.stopped = 0

    def start(self) -> None:
        """Do nothing: the frames come from the test."""

    def stop(self) -> None:
        self.stopped += 1


class Clock:
    """Time passes by one second whenever it is read."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += 1.0
        return self._now_s


def settled(*steps: Sequence[float | None], limit_s: float = 100.0) -> Settling:
    """Run a step for each sequence of pending compactions; return the object after the last one."""
    frames = [Frames(Replayed(iter(values))) for values in steps]
    connected = iter(frames)
    settling = Settling(limit_s, lambda _: next(connected), Clock())
    for _ in steps:
        with settling.around(PLAN):
            pass
    assert all(each.stopped == 1 for each in frames)
    return settling


def test_a_step_ends_when_the_values_are_back_at_the_baseline() -> None:
    assert settled([0, 0, 50, 20, 0]).problem == ""
    assert settled([0, 0, 0], [50, 30, 1]).problem == ""


def test_the_baseline_is_that_before_the_first_step() -> None:
    assert settled([30, 40, 40], [40]).problem == ""


def test_a_cluster_that_does_not_settle_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    settling = settled([0, 0, 50], limit_s=20.0)
    assert settling.problem == "compactions_pending is 50 (baseline: 0)"
    assert "not settled after 20 s: compactions_pending is 50 (baseline: 0)" in capsys.readouterr().err


def test_values_that_are_never_known_are_not_waited_for() -> None:
    assert settled([None, None, None]).problem == ""


def test_ctrl_c_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    history = Replayed(iter([0.0, 0.0]))
    settling = Settling(100.0, lambda _: Frames(history), Clock())
    with settling.around(PLAN):
        monkeypatch.setattr(history, "wait", _interrupted)
    assert settling.is_interrupted


def _interrupted(_number: int, _timeout_s: float) -> NoReturn:
    raise KeyboardInterrupt

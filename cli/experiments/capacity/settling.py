"""Waits after each step until the cluster is as idle as before the first one."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from cli.errors import note
from collector.live.live_cluster import Plan
from exporters.live.frame import Frame, History
from exporters.live.live_columns import value
from exporters.live.live_frames import LiveFrames, Wanted

COLUMNS = (
    "compactions_pending",
    "flush_pending",
    "hints_per_s",
    "mutation_stage_pending",
    "native_transport_pending",
    "read_stage_pending",
)
"""The columns that must be back at their baseline."""
BASELINE_FRAMES = 2
"""The number of intervals of the baseline; rates are known from the second one on."""
BASELINE_WAIT_S = 10.0
SLACK = 1.0
"""A value may exceed its baseline by this much, because a few tasks are always pending."""
POLL_S = 0.5


class Frames(Protocol):
    """Frames of a live cluster."""

    history: History

    def start(self) -> None: ...

    def stop(self) -> None: ...


def live_frames(plan: Plan) -> Frames:
    return LiveFrames(plan, Wanted(frozenset(COLUMNS)))


class Settling:
    """Measures the baseline before the first step, and waits for it after each one, for at most `limit_s`."""

    def __init__(
        self,
        limit_s: float,
        connect: Callable[[Plan], Frames] = live_frames,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._connect = connect
        self._now = now
        self._baseline: Mapping[str, float] = {}
        self.is_interrupted = False
        """Whether Ctrl-C ended the wait."""
        self.problem = ""
        """What was not back at its baseline after the last step; otherwise ""."""

    @contextmanager
    def around(self, plan: Plan) -> Iterator[None]:
        """Wait at the end of the block for the baseline, which is measured at the beginning of the first block."""
        frames = self._connect(plan)
        frames.start()
        try:
            if not self._baseline:
                self._baseline = self._measured(frames.history)
            yield
            try:
                self._wait(frames.history)
            except KeyboardInterrupt:
                self.is_interrupted = True
        finally:
            frames.stop()

    def _measured(self, history: History) -> dict[str, float]:
        """Return the highest value of each column in the first frames; a column without a value is left out."""
        ends_s = self._now() + BASELINE_WAIT_S
        while len(history.frames) < BASELINE_FRAMES and self._now() < ends_s:
            history.wait(history.number, POLL_S)
        baseline: dict[str, float] = {}
        for frame in history.frames:
            for name in COLUMNS:
                number = value(frame.cluster, name)
                if number is not None:
                    baseline[name] = max(number, baseline.get(name, 0.0))
        return baseline

    def _wait(self, history: History) -> None:
        """Wait until no value of a new frame exceeds its baseline. Prints a note if that takes too long."""
        ends_s = self._now() + self._limit_s
        number = history.number
        self.problem = ""
        while True:
            if history.wait(number, POLL_S):
                number = history.number
                self.problem = self._excess(history.frames[-1])
                if not self.problem:
                    return
            if self._now() >= ends_s:
                break
        if self.problem:
            note(f"not settled after {self._limit_s:g} s: {self.problem}")

    def _excess(self, frame: Frame) -> str:
        """Return the values that exceed their baseline; "" if there are none."""
        return ", ".join(
            f"{name} is {number:g} (baseline: {baseline:g})"
            for name, baseline in self._baseline.items()
            if (number := value(frame.cluster, name)) is not None and number > baseline + SLACK
        )

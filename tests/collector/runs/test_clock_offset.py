"""Measured clock offsets are accurate to within their stated error, whatever the delays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.agents.agent_nodes import ClockOffsetError, measured_offset
from collector.runs.run import NodeClock

START_S = 1_700_000_000.0
DELAYS_S = st.floats(0, 2)
# As a float, a time since the epoch has a resolution of about 0.2 µs.
RESOLUTION_S = 1e-5


class Clocks:
    """A local clock, and an agent's clock that is ahead by `offset_s`; each exchange takes the next of `delays`."""

    def __init__(self, offset_s: float, delays: list[tuple[float, float, float]]) -> None:
        self.now_s = 0.0
        self._offset_s = offset_s
        self._delays = iter(delays)

    def wall_s(self) -> float:
        return START_S + self.now_s

    def monotonic_s(self) -> float:
        return 5000.0 + self.now_s

    def ask(self) -> tuple[float, float]:
        """Simulate an exchange; return the agent's times of receiving the request and of sending the response."""
        request_s, agent_s, response_s = next(self._delays)
        received_s = START_S + self.now_s + request_s + self._offset_s
        self.now_s += request_s + agent_s + response_s
        return received_s, received_s + agent_s


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(DELAYS_S, DELAYS_S, DELAYS_S), min_size=1, max_size=8))
def test_the_true_offset_is_within_the_error(offset_s: float, delays: list[tuple[float, float, float]]) -> None:
    clocks = Clocks(offset_s, delays)
    result = measured_offset(clocks.ask, clocks.wall_s, clocks.monotonic_s, len(delays))
    assert abs(result.offset_s - offset_s) <= result.error_s + RESOLUTION_S
    shortest_s = min(request_s + response_s for request_s, _, response_s in delays)
    assert result.error_s == pytest.approx(shortest_s / 2, abs=RESOLUTION_S)
    assert START_S <= result.at_s <= clocks.wall_s()


def offset_of(*exchanges: tuple[float, float, float, float]) -> NodeClock:
    """Return the offset measured in exchanges.

    Each is the time at which the request was sent, those at which the agent received and answered it, and its duration.
    """
    answers = iter([(received_s, answered_s) for _, received_s, answered_s, _ in exchanges])
    sent_s = iter([sent_s for sent_s, *_ in exchanges])
    monotonic_s = iter([time_s for *_, elapsed_s in exchanges for time_s in (0.0, elapsed_s)])
    return measured_offset(lambda: next(answers), lambda: next(sent_s), lambda: next(monotonic_s), len(exchanges))


def test_a_step_of_the_local_clock_during_an_exchange_does_not_change_the_error() -> None:
    clock = offset_of((100.0, 105.01, 105.02, 0.03))
    assert clock.error_s == pytest.approx(0.01)
    assert clock.offset_s == pytest.approx(5.0)


def test_an_exchange_with_impossible_times_is_discarded() -> None:
    good = (100.0, 105.01, 105.02, 0.5)
    negative, too_long = (100.0, 105.01, 104.0, 0.5), (100.0, 105.01, 105.52, 0.5)
    assert offset_of(negative, good, too_long) == offset_of(good)
    for impossible in (negative, too_long):
        with pytest.raises(ClockOffsetError, match=r"the agent's clock was changed"):
            offset_of(impossible)


@pytest.mark.parametrize("ahead_s", [5e9, -5e9, 1e308])
def test_an_offset_of_more_than_a_century_is_an_error(ahead_s: float) -> None:
    with pytest.raises(ClockOffsetError, match="more than a century off"):
        offset_of((100.0, 100 + ahead_s, 100 + ahead_s, 0.5))

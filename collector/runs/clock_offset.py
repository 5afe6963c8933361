"""The offset of an agent's clock, estimated from exchanges of timestamps, as in NTP."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from collector.runs.run import MAX_OFFSET_S

EXCHANGES = 8
# As a float, a time since the epoch has a resolution of about 0.2 µs.
RESOLUTION_S = 1e-6


class ClockOffsetError(ValueError):
    """The offset cannot be measured, because the agent's times are impossible."""


@dataclass(frozen=True)
class ClockExchange:
    """A request to an agent and its response, with times in seconds since the epoch.

    sent_s     when the request was sent, on the local clock; the other two times are on the agent's clock.
    elapsed_s  the time from sending the request to receiving the response, on the monotonic clock.
    """

    sent_s: float
    agent_received_s: float
    agent_sent_s: float
    elapsed_s: float

    @property
    def is_possible(self) -> bool:
        """Whether the agent's processing time is neither negative nor longer than the whole exchange.

        Otherwise, a clock was changed, or the agent returned a wrong time.
        """
        return 0 <= self.agent_sent_s - self.agent_received_s <= self.elapsed_s + RESOLUTION_S

    @property
    def round_trip_s(self) -> float:
        """The time that the request and the response spent in transit, without the agent's processing time."""
        return max(self.elapsed_s - (self.agent_sent_s - self.agent_received_s), 0.0)


@dataclass(frozen=True)
class ClockOffset:
    """How far an agent's clock is ahead of the local one; the true offset is within `error_s` of `offset_s`.

    at_s  the local time of the measurement.
    """

    at_s: float
    offset_s: float
    error_s: float


def offset_of(exchanges: Iterable[ClockExchange]) -> ClockOffset:
    """Return the offset according to the possible exchange with the shortest round trip.

    The agent received the request at an unknown moment of the round trip. The offset is computed for its middle, so
    the error is at most half the round trip (RFC 5905, section 8). Raises ClockOffsetError if no exchange is possible,
    or if the offset exceeds MAX_OFFSET_S.
    """
    possible = [exchange for exchange in exchanges if exchange.is_possible]
    if not possible:
        raise ClockOffsetError("the agent's clock was changed during the measurement, or its times are wrong")
    best = min(possible, key=lambda exchange: exchange.round_trip_s)
    half_s = best.round_trip_s / 2
    if not abs(best.agent_received_s - best.sent_s) <= MAX_OFFSET_S:
        raise ClockOffsetError("the agent's clock is more than a century off")
    return ClockOffset(best.sent_s + half_s, best.agent_received_s - best.sent_s - half_s, half_s)


def measured(
    ask: Callable[[], tuple[float, float]],
    wall_s: Callable[[], float],
    monotonic_s: Callable[[], float],
    exchanges: int = EXCHANGES,
) -> ClockOffset:
    """Measure the offset of an agent's clock.

    `ask` sends a request to the agent, and returns the times at which the agent received and answered it, on the
    agent's clock. Raises ClockOffsetError.
    """

    def exchange() -> ClockExchange:
        sent_s, began_s = wall_s(), monotonic_s()
        received_s, answered_s = ask()
        return ClockExchange(sent_s, received_s, answered_s, monotonic_s() - began_s)

    return offset_of(exchange() for _ in range(exchanges))

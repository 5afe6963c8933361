"""Availability logs one line when the node stops answering, and one when it starts answering again."""

from cli.agent.agent_state import FIRST_READING_S, Availability
from tests.collector.fakes import FakeClock


class Node:
    """A node that a test makes available or unavailable, second by second, and the lines logged about it."""

    def __init__(self, *, answered: bool) -> None:
        self.clock = FakeClock()
        self.lines: list[str] = []
        self.availability = Availability(self.lines.append, self.clock.monotonic_s, answered=answered)

    def tick(self, seconds: int, *, answers: bool, origin: str = "") -> list[str]:
        """Simulate a number of seconds, and return the lines logged in that time."""
        self.lines.clear()
        for _ in range(seconds):
            self.clock.busy(1)
            self.availability.tick(answers=answers, problem="cassandra: connection refused", origin=origin)
        return list(self.lines)


def test_an_outage_logs_two_lines_with_its_reason_and_duration() -> None:
    node = Node(answered=True)
    assert node.tick(30, answers=True, origin="1") == []
    assert node.tick(20, answers=False) == [
        "Cassandra stopped answering, having answered for 30 s: cassandra: connection refused"
    ]
    assert node.tick(30, answers=True, origin="2") == [
        "Cassandra is answering, after 20 s without a response: it restarted",
    ]
    assert node.tick(1, answers=False) == [
        "Cassandra stopped answering, having answered for 30 s: cassandra: connection refused"
    ]
    assert node.tick(1, answers=True, origin="2") == ["Cassandra is answering, after 1 s without a response"]


def test_a_node_that_starts_down_is_reported_when_it_answers() -> None:
    node = Node(answered=False)
    assert node.tick(300, answers=False) == []
    assert node.tick(300, answers=True, origin="1") == ["Cassandra is answering, after 301 s without a response"]


def test_the_first_reading_may_take_a_while() -> None:
    node = Node(answered=True)
    assert node.tick(int(FIRST_READING_S) - 1, answers=False) == []
    assert node.tick(5, answers=True) == []
    silent = Node(answered=True)
    assert len(silent.tick(2 * int(FIRST_READING_S), answers=False)) == 1

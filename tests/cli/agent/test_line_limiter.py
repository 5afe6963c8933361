"""The agent's log: news are said at once, the same again at most once a minute, and nothing floods it."""

from hypothesis import given
from hypothesis import strategies as st

from cli.agent.line_limiter import AGAIN_S, MOST_PER_MINUTE, LineLimiter


class Said:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.lines: list[str] = []
        self.log = LineLimiter(self.lines.append, lambda: self.now_s)


def test_the_same_line_is_said_once_a_minute_with_how_often_it_was_held_back() -> None:
    said = Said()
    for _ in range(150):
        said.log("down")
        said.now_s += 1.0
    assert said.lines == ["down", "down (59 times more since)", "down (59 times more since)"]


def test_another_line_is_said_at_once() -> None:
    said = Said()
    for text in ("down", "up", "down"):
        said.log(text)
    assert said.lines == ["down", "up"]


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 2)), max_size=500))
def test_whatever_happens_a_minute_has_a_bounded_number_of_lines(calls: list[tuple[int, float]]) -> None:
    said = Said()
    at: list[float] = []
    for number, passed_s in calls:
        said.now_s += passed_s
        before = len(said.lines)
        said.log(f"line {number}")
        at += [said.now_s] * (len(said.lines) - before)
    for begin in at:
        assert sum(begin <= each < begin + AGAIN_S for each in at) <= 2 * (MOST_PER_MINUTE + 1)


def test_what_was_held_back_is_told_of() -> None:
    said = Said()
    for number in range(MOST_PER_MINUTE + 40):
        said.log(f"line {number}")
    said.now_s += AGAIN_S
    said.log("later")
    assert said.lines[MOST_PER_MINUTE:] == ["40 further lines were held back in a minute", "later"]

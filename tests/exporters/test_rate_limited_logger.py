"""The rate-limited logger: new lines appear at once, repeated ones once a minute; the number of lines is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.rate_limited_logger import MAX_LINES_PER_PERIOD, PERIOD_S, RateLimitedLogger


class Log:
    """A logger with a simulated clock, and the lines it has written."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.lines: list[str] = []
        self.log = RateLimitedLogger(self.lines.append, lambda: self.now_s)


def test_a_repeated_line_is_written_once_a_minute_with_a_count() -> None:
    log = Log()
    for _ in range(150):
        log.log("down")
        log.now_s += 1.0
    repeated = "down (60 times in the last 60 s)"
    assert log.lines == ["down", repeated, repeated]


def test_a_different_line_is_written_at_once() -> None:
    log = Log()
    for text in ("down", "up", "down"):
        log.log(text)
    assert log.lines == ["down", "up"]


def test_suppressed_lines_of_a_kind_are_summarised_by_the_last_one_and_a_count() -> None:
    log = Log()
    for number in range(3):
        log.log(f"first {number}", kind="a")
    log.log("second", kind="b")
    log.log.flush()
    assert log.lines == ["first 0", "second"]
    log.now_s += PERIOD_S
    log.log.flush()
    assert log.lines[2:] == ["first 2 (2 times in the last 60 s)"]
    log.now_s += 140.0
    log.log.flush()
    log.log("again", kind="a")
    assert log.lines[3:] == ["again"]


def test_a_forgotten_kind_is_written_at_once() -> None:
    log = Log()
    log.log("down", kind="state")
    log.log.forget("state")
    log.log("down", kind="state")
    assert log.lines == ["down", "down"]


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 2), st.booleans()), max_size=500))
def test_the_number_of_lines_per_minute_is_bounded(calls: list[tuple[int, float, bool]]) -> None:
    log = Log()
    written_s: list[float] = []
    for number, elapsed_s, flushes in calls:
        log.now_s += elapsed_s
        before = len(log.lines)
        log.log(f"line {number}")
        if flushes:
            log.log.flush()
        written_s += [log.now_s] * (len(log.lines) - before)
    for begin_s in written_s:
        in_minute = sum(begin_s <= time_s < begin_s + PERIOD_S for time_s in written_s)
        assert in_minute <= 2 * (MAX_LINES_PER_PERIOD + 1)


def test_the_lines_beyond_the_bound_are_counted() -> None:
    log = Log()
    for number in range(MAX_LINES_PER_PERIOD + 40):
        log.log(f"line {number}")
    log.now_s += PERIOD_S
    log.log("later")
    assert log.lines[MAX_LINES_PER_PERIOD:] == ["suppressed 40 further lines within a minute", "later"]

"""A command gets SIGINT after its duration, and SIGTERM and SIGKILL after grace periods; each of them once."""

import signal

import pytest

from cli.record.command.supervised_command import FAILED, GRACE_S, CommandResult, TimeLimit

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def sent_at(limit: TimeLimit, clock: Clock, elapsed_s: float) -> int | None:
    clock.now_s = 1000.0 + elapsed_s
    return limit.due_signal()


def test_signals_are_sent_after_the_duration_and_after_each_grace_period() -> None:
    clock = Clock()
    limit = TimeLimit(5.0, clock)
    assert sent_at(limit, clock, 0.0) is None
    clock.now_s = 1000.0
    limit.start(delay_s=1.0)
    assert limit.wait_s(60.0) == 6.0
    assert limit.wait_s(0.25) == 0.25
    for number, due_s in zip(SIGNALS, (6.0, 6.0 + GRACE_S, 6.0 + 2 * GRACE_S), strict=True):
        assert sent_at(limit, clock, due_s - 0.01) is None
        assert sent_at(limit, clock, due_s) == number
    assert sent_at(limit, clock, 1e9) is None
    assert limit.wait_s(0.25) == 0.25


def test_without_a_duration_there_is_no_signal() -> None:
    clock = Clock()
    limit = TimeLimit(None, clock)
    limit.start()
    assert sent_at(limit, clock, 1e9) is None
    assert limit.wait_s(0.25) == 0.25
    assert limit.judged(CommandResult(3)) == CommandResult(3)


@pytest.mark.parametrize("exit_code", [0, 1, 3, 128 + signal.SIGINT, 128 + signal.SIGTERM, FAILED])
@pytest.mark.parametrize("signals", [1, 2])
def test_a_command_that_ends_after_sigint_or_sigterm_has_succeeded(exit_code: int, signals: int) -> None:
    assert after(signals, CommandResult(exit_code, left=True)) == CommandResult(0, left=True, ended_by_duration=True)


def test_a_command_that_ends_before_the_duration_has_its_own_status() -> None:
    assert after(0, CommandResult(3)) == CommandResult(3)


def test_a_command_that_has_to_be_killed_has_failed() -> None:
    result = after(3, CommandResult(128 + signal.SIGKILL, "disk full"))
    message = "the command did not end within 20 s after its duration, so it has been killed; disk full"
    assert result == CommandResult(128 + signal.SIGKILL, message, ended_by_duration=True)


def test_a_lost_command_has_failed() -> None:
    assert after(1, CommandResult(FAILED, "connection lost")) == CommandResult(FAILED, "connection lost")


def after(signals: int, result: CommandResult) -> CommandResult:
    """Return the judgement on a result after a number of signals."""
    clock = Clock()
    limit = TimeLimit(5.0, clock)
    limit.start()
    clock.now_s += 5.0 + 2 * GRACE_S
    for number in SIGNALS[:signals]:
        assert limit.due_signal() == number
    return limit.judged(result)

"""Reports when the node stops answering and when it answers again: one line each, with the reason."""

from collections.abc import Callable

# A node that answered when it was first contacted may take so long until its first reading.
FIRST_READING_S = 120.0


class Availability:
    """Compares each tick with the one before; belongs to the thread that samples."""

    def __init__(self, log: Callable[[str], None], monotonic_s: Callable[[], float], *, answered: bool) -> None:
        """Take where to report, and whether the node answered when it was first contacted."""
        self._log = log
        self._monotonic_s = monotonic_s
        self._since_s = monotonic_s()
        # None until the first reading.
        self._answers = None if answered else False
        self._origin = ""

    def tick(self, *, answers: bool, problem: str, origin: str) -> None:
        """Take whether the node answers, why not, and what its counters count from ("" where it is not known)."""
        restarted = bool(origin and self._origin) and origin != self._origin
        self._origin = origin or self._origin
        if answers == self._answers:
            return
        now_s = self._monotonic_s()
        lasted_s = now_s - self._since_s
        if not answers and self._answers is None and lasted_s < FIRST_READING_S:
            return
        if not answers:
            self._log(f"Cassandra stopped answering after {lasted_s:.0f} s: {problem}")
        elif self._answers is False:
            self._log(f"Cassandra answers after {lasted_s:.0f} s without an answer{': it restarted' * restarted}")
        self._answers, self._since_s = answers, now_s

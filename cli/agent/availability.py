"""Logs one line with the reason when the node stops answering, and another when it answers again."""

from collections.abc import Callable

# If the first contact has succeeded, wait this long for the first reading before reporting the node as unavailable.
FIRST_READING_S = 120.0


class Availability:
    """Detects and logs changes in the node's availability; used only by the sampling thread."""

    def __init__(self, log: Callable[[str], None], monotonic_s: Callable[[], float], *, answered: bool) -> None:
        """Report changes to `log`; `answered` is true if the first contact succeeded."""
        self._log = log
        self._monotonic_s = monotonic_s
        self._since_s = monotonic_s()
        # None if the first contact succeeded and nothing has been read since.
        self._answers = None if answered else False
        self._origin = ""

    def tick(self, *, answers: bool, problem: str, origin: str) -> None:
        """Process a tick.

        problem  the reason why the node is not answering.
        origin   the origin of the node's counters, or "" if it is unknown.
        """
        restarted = bool(origin and self._origin) and origin != self._origin
        self._origin = origin or self._origin
        if answers == self._answers:
            return
        now_s = self._monotonic_s()
        lasted_s = now_s - self._since_s
        if not answers and self._answers is None and lasted_s < FIRST_READING_S:
            return
        if not answers:
            self._log(f"Cassandra stopped answering, having answered for {lasted_s:.0f} s: {problem}")
        elif self._answers is False:
            restart = ": it restarted" if restarted else ""
            self._log(f"Cassandra is answering, after {lasted_s:.0f} s without a response{restart}")
        self._answers, self._since_s = answers, now_s

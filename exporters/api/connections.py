"""Who is connected: so many at most, and each only for as long as something comes of it."""

from collections.abc import Callable
from math import inf

MOST = 512
HEAD_S, BODY_S, IDLE_S, STALLED_S = 10.0, 10.0, 75.0, 30.0


class ClientConnection:
    """One connection, from the moment it is accepted, and until when it may be as it is."""

    def __init__(self, end: Callable[[], object], now_s: float) -> None:
        """Take what ends it at once; it has a while to ask something."""
        self.end = end
        self.asked = False
        self.waits = True
        self._until_s = now_s + HEAD_S
        self._stalled_until_s = inf

    def begins(self, now_s: float) -> None:
        """Note that another request has begun to come."""
        if self.waits and self.asked:
            self.waits, self._until_s = False, now_s + HEAD_S

    def sends(self, now_s: float) -> None:
        """Note that the head of a request is here; its body must follow."""
        self.asked, self.waits, self._until_s = True, False, now_s + BODY_S

    def is_served(self) -> None:
        """Note that a request is here as a whole; the answer takes as long as it takes."""
        self._until_s = inf

    def is_idle(self, now_s: float) -> None:
        """Note that all that was asked is answered."""
        self.waits, self._until_s = True, now_s + IDLE_S

    def stalls(self, now_s: float) -> None:
        """Note that it does not read what it is sent."""
        self._stalled_until_s = now_s + STALLED_S

    def reads(self) -> None:
        """Note that it reads again."""
        self._stalled_until_s = inf

    def is_over(self, now_s: float) -> bool:
        """Return whether it has had its time."""
        return now_s >= min(self._until_s, self._stalled_until_s)


class Connections:
    """All connections. Where there are too many, who waits longest makes room: first of those that never asked."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._all: dict[ClientConnection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, visit: ClientConnection) -> bool:
        """Take one more in; return whether there is room for it."""
        if len(self._all) >= self._most and not self.make_room():
            return False
        self._all[visit] = None
        return True

    def leave(self, visit: ClientConnection) -> None:
        """Forget one that is gone."""
        self._all.pop(visit, None)

    def make_room(self) -> bool:
        """End the connection that is missed least; return whether there was one."""
        waiting = next((visit for visit in self._all if not visit.asked), None)
        waiting = waiting or next((visit for visit in self._all if visit.waits), None)
        if waiting is None:
            return False
        self.leave(waiting)
        waiting.end()
        return True

    def sweep(self, now_s: float) -> int:
        """End those that have had their time; return how many never asked for anything."""
        over = [visit for visit in self._all if visit.is_over(now_s)]
        for visit in over:
            self.leave(visit)
            visit.end()
        return sum(not visit.asked for visit in over)

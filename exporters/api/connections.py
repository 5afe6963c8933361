"""The open connections: a bounded number, each with a deadline that depends on its state."""

from collections.abc import Callable
from math import inf

MAX_CONNECTIONS = 512
HEAD_S, BODY_S, IDLE_S, STALLED_S = 10.0, 10.0, 75.0, 30.0
"""Time limits for a request head (including the handshake), a body, an idle connection, and a stalled client."""


class ClientConnection:
    """An open connection. It counts towards the limit from the moment it is accepted."""

    def __init__(self, abort: Callable[[], object], now_s: float) -> None:
        """Create a connection; calling `abort` closes it immediately."""
        self.abort = abort
        self.has_requested = False
        self.is_waiting = True
        self._deadline_s = now_s + HEAD_S
        self._stalled_deadline_s = inf

    def request_begins(self, now_s: float) -> None:
        """Record that data has arrived; on an idle connection, this begins another request."""
        if self.is_waiting and self.has_requested:
            self.is_waiting, self._deadline_s = False, now_s + HEAD_S

    def head_complete(self, now_s: float) -> None:
        """Record that a request head is complete; its body must arrive within BODY_S."""
        self.has_requested, self.is_waiting, self._deadline_s = True, False, now_s + BODY_S

    def request_complete(self) -> None:
        """Record that a request is complete; its response has no time limit unless the client stops reading."""
        self._deadline_s = inf

    def idle(self, now_s: float) -> None:
        """Record that every request has been answered."""
        self.is_waiting, self._deadline_s = True, now_s + IDLE_S

    def write_stalled(self, now_s: float) -> None:
        """Record that the client is not reading the response."""
        self._stalled_deadline_s = now_s + STALLED_S

    def write_resumed(self) -> None:
        """Record that the client is reading again."""
        self._stalled_deadline_s = inf

    def is_expired(self, now_s: float) -> bool:
        """Return whether a deadline has passed."""
        return now_s >= min(self._deadline_s, self._stalled_deadline_s)


class Connections:
    """All open connections, in the order in which they were accepted.

    At the limit, a new connection replaces the oldest one that has never sent a complete request head, or else the
    oldest idle one.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections
        self._all: dict[ClientConnection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: ClientConnection) -> bool:
        """Add a connection if there is room or another can be evicted; return whether it was added."""
        if len(self._all) >= self._max_connections and not self.evict_one():
            return False
        self._all[connection] = None
        return True

    def remove(self, connection: ClientConnection) -> None:
        """Remove a connection that has been closed."""
        self._all.pop(connection, None)

    def evict_one(self) -> bool:
        """Close the connection that a new one may replace; return False if all are busy."""
        candidate = next((connection for connection in self._all if not connection.has_requested), None)
        candidate = candidate or next((connection for connection in self._all if connection.is_waiting), None)
        if candidate is None:
            return False
        self.remove(candidate)
        candidate.abort()
        return True

    def close_expired(self, now_s: float) -> int:
        """Close the connections that have passed their deadlines; return how many of them never sent a request."""
        expired = [connection for connection in self._all if connection.is_expired(now_s)]
        for connection in expired:
            self.remove(connection)
            connection.abort()
        return sum(not connection.has_requested for connection in expired)

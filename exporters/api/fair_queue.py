"""A bounded queue that is fair between clients."""

from collections import deque
from typing import Generic, TypeVar

MAX_WAITING, MAX_WAITING_PER_CLIENT = 64, 32
"""Limits for each lane: the total number of items, and the number from one client."""

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Serves clients in turn, and the users of each client in turn.

    Trusted clients have a separate lane, which gets at least every second turn.
    """

    def __init__(self, max_waiting: int = MAX_WAITING, max_waiting_per_client: int = MAX_WAITING_PER_CLIENT) -> None:
        self._lanes = {trusted: _Lane[T](max_waiting, max_waiting_per_client) for trusted in (True, False)}
        self._next = True

    def put(self, client: str, user: str, item: T, *, trusted: bool) -> T | None:
        """Add an item; return the item that was dropped for lack of room, possibly this one, or None."""
        return self._lanes[trusted].put(client, user, item)

    def pop(self) -> T | None:
        """Remove and return the next item, or None if the queue is empty."""
        first = self._next
        self._next = not first
        item = self._lanes[first].pop()
        return self._lanes[not first].pop() if item is None else item


class _Lane(Generic[T]):
    """Items keyed by client and then by user; at both levels, the first key is the next to be served."""

    def __init__(self, max_waiting: int, max_waiting_per_client: int) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_per_client = max_waiting_per_client
        self._clients: dict[str, dict[str, deque[T]]] = {}

    def put(self, client: str, user: str, item: T) -> T | None:
        count = self._count(client)
        dropped = None
        if count >= self._max_waiting_per_client:
            users = self._clients[client]
            if max(map(len, users.values())) <= len(users.get(user, ())) + 1:
                return item
            dropped = self._drop(client)
        elif sum(map(self._count, self._clients)) >= self._max_waiting:
            longest = max(self._clients, key=self._count)
            if self._count(longest) <= count + 1:
                return item
            dropped = self._drop(longest)
        self._clients.setdefault(client, {}).setdefault(user, deque()).append(item)
        return dropped

    def pop(self) -> T | None:
        if not self._clients:
            return None
        client, users = next(iter(self._clients.items()))
        user, items = next(iter(users.items()))
        item = items.popleft()
        # A user or client with remaining items goes to the back of the queue.
        del users[user], self._clients[client]
        if items:
            users[user] = items
        if users:
            self._clients[client] = users
        return item

    def _count(self, client: str) -> int:
        return sum(map(len, self._clients.get(client, {}).values()))

    def _drop(self, client: str) -> T:
        """Remove and return the newest item of the user with the most items."""
        users = self._clients[client]
        user = max(users, key=lambda name: len(users[name]))
        item = users[user].pop()
        if not users[user]:
            del users[user]
        return item

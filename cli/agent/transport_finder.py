"""Looks for another way to the node while the one that is used does not answer; ticks go on meanwhile."""

import threading
from collections.abc import Callable, Iterable

import click

from cli.node.transports import Contact, TransportFactory, first_contact
from collector.sampling.node_sampler import NodeSampler

EVERY_S = 30.0


class TransportFinder:
    """Tries all ways again, in a thread of its own."""

    def __init__(
        self,
        factories: Callable[[], Iterable[tuple[str, TransportFactory]]],
        make_sampler: Callable[[str, TransportFactory], NodeSampler],
        monotonic_s: Callable[[], float],
    ) -> None:
        """Take what yields the ways, what makes a watch of one, and a clock."""
        self._ways = factories
        self._watch_of = make_sampler
        self._monotonic_s = monotonic_s
        self._answered_s = monotonic_s()
        self.running: threading.Thread | None = None
        self._found: Contact | None = None

    def tick(self, *, answered: bool) -> Contact | None:
        """Take whether the node answered in this tick; return another way to it that does, where it does not."""
        now_s = self._monotonic_s()
        if answered:
            self._answered_s = now_s
        if self._is_running():
            return None
        found, self._found = self._found, None
        if found is not None and found.answered and not answered:
            return found
        if found is not None:
            found.sampler.close()
        if now_s - self._answered_s >= EVERY_S:
            self._answered_s = now_s
            self.running = threading.Thread(target=self._look, name="finder", daemon=True)
            self.running.start()
        return None

    def _is_running(self) -> bool:
        return self.running is not None and self.running.is_alive()

    def _look(self) -> None:
        try:
            self._found = first_contact(self._ways(), self._watch_of)
        except click.UsageError:
            # There is none, as before.
            self._found = None

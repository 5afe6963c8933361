"""Searches for a working transport while the node is not responding; ticks continue meanwhile."""

import threading
from collections.abc import Callable, Iterable

import click

from cli.line.transports import Contact, TransportFactory, first_contact
from collector.node.sampling.node_sampler import NodeSampler

EVERY_S = 30.0


class TransportFinder:
    """Retries all transports in its own thread."""

    def __init__(
        self,
        factories: Callable[[], Iterable[tuple[str, TransportFactory]]],
        make_sampler: Callable[[str, TransportFactory], NodeSampler],
        monotonic_s: Callable[[], float],
    ) -> None:
        """`factories` yields the transports to try; `make_sampler` creates a sampler for one of them."""
        self._factories = factories
        self._make_sampler = make_sampler
        self._monotonic_s = monotonic_s
        self._answered_s = monotonic_s()
        self.running: threading.Thread | None = None
        self._result: Contact | None = None

    def tick(self, *, answered: bool) -> Contact | None:
        """Process a tick; return the contact of a working transport if the node is not answering and one was found."""
        now_s = self._monotonic_s()
        if answered:
            self._answered_s = now_s
        if self._is_running():
            return None
        contact_result, self._result = self._result, None
        if contact_result is not None and contact_result.answered and not answered:
            return contact_result
        if contact_result is not None:
            contact_result.sampler.close()
        if now_s - self._answered_s >= EVERY_S:
            self._answered_s = now_s
            self.running = threading.Thread(target=self._search, name="finder", daemon=True)
            self.running.start()
        return None

    def _is_running(self) -> bool:
        return self.running is not None and self.running.is_alive()

    def _search(self) -> None:
        try:
            self._result = first_contact(self._factories(), self._make_sampler)
        except click.UsageError:
            # No transport is available yet.
            self._result = None

"""A run on several agents: begun, marked and ended on all of them, and kept alive in between."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from collector.cluster.live.agent_connection import AgentError
from collector.runs.agent_client import AgentClient

# A client may miss several renewals, for example while an agent restarts.
LEASE_S, RENEW_EVERY_S = 60.0, 10.0
MAX_PARALLEL = 16


class AgentRuns:
    """The same run on several agents. Agents that refuse or fail are left out; the run goes on without them."""

    def __init__(self, clients: Sequence[AgentClient], report: Callable[[str], None]) -> None:
        """`report` receives a line for each agent on which the run cannot be begun, marked or ended."""
        self._clients = list(clients)
        self._report = report
        self._ids: dict[AgentClient, str] = {}
        # A client must be used by one thread at a time.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def begin(self, name: str) -> None:
        """Begin the run on all agents, and renew its leases until `end`."""

        def begin(client: AgentClient) -> None:
            content = client.post("/api/v1/runs", {"name": name, "lease_s": LEASE_S})
            self._ids[client] = str(content["id"])

        self._for_each(self._clients, begin, "cannot begin the run there")
        self._renewing.start()

    def mark(self, text: str) -> None:
        """Mark the run on all agents."""
        self._for_each(
            list(self._ids),
            lambda client: client.post(f"/api/v1/runs/{self._ids[client]}/marks", {"text": text}),
            "cannot mark the run there",
        )

    def end(self) -> None:
        """End the run on all agents."""
        self._ended.set()
        if self._renewing.is_alive():
            self._renewing.join()
        self._for_each(
            list(self._ids),
            lambda client: client.post(f"/api/v1/runs/{self._ids[client]}/end", {}),
            "cannot end the run there; its lease will expire",
        )
        for client in self._clients:
            client.close()

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            # A failure is not reported, because the next renewal may succeed before the lease expires.
            self._for_each(
                list(self._ids), lambda client: client.post(f"/api/v1/runs/{self._ids[client]}/lease", {}), ""
            )

    def _for_each(self, clients: Sequence[AgentClient], act: Callable[[AgentClient], object], problem: str) -> None:
        """Call `act` for all clients in parallel; report a failure as `problem` with its reason."""

        def attempt(client: AgentClient) -> str:
            try:
                act(client)
            except AgentError as error:
                return str(error)
            except (KeyError, TypeError):
                return f"{client.address.url}: the response does not describe a run"
            return ""

        if not clients:
            return
        with self._lock, ThreadPoolExecutor(min(MAX_PARALLEL, len(clients))) as pool:
            for reason in pool.map(attempt, clients):
                if reason and problem:
                    self._report(f"{problem}: {reason}")

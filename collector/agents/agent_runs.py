"""Begins, marks and ends a run on several agents, and renews its leases."""

import http.client
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from collector.agents.agent_client import AgentClient, AgentStatusError
from collector.agents.agent_connection import AgentError

# A lease outlasts several missed renewals, for example while an agent restarts.
LEASE_S, RENEW_EVERY_S = 60.0, 10.0
MAX_PARALLEL = 16


class _EndedEarlyError(Exception):
    """The run is no longer active on an agent, or no longer known to it."""


class _MarkRefusedError(Exception):
    """The run has no room for a mark on an agent, or has ended; the message is the agent's error."""


class AgentRuns:
    """The same run on several agents. Agents that refuse to begin it are left out; the run goes on without them.

    An agent that fails later counts as silent: it receives no marks until it answers again, because each attempt may
    take a long time and would delay the marks for the other agents.
    """

    def __init__(self, clients: Sequence[AgentClient], report: Callable[[str], None]) -> None:
        """`report` receives a line for each agent that cannot begin, mark or end the run, or on which it ends early."""
        self._clients = list(clients)
        self._report = report
        self._ids: dict[AgentClient, str] = {}
        self._silent: set[AgentClient] = set()
        self._refusing: set[AgentClient] = set()
        # A client must be used by one thread at a time. The renewing thread uses the clients of silent agents, and the
        # thread that holds the lock uses the others.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def begin(self, name: str) -> None:
        """Begin the run on all agents, and renew its leases until `end`."""

        def begin(client: AgentClient) -> None:
            content = client.post("/api/v1/runs", {"name": name, "lease_s": LEASE_S})
            self._ids[client] = str(content["id"])

        with self._lock:
            self._for_each(self._clients, begin, "cannot begin the run")
        self._renewing.start()

    def mark(self, text: str) -> None:
        """Add a mark to the run on all agents that are answering."""

        def mark(client: AgentClient) -> None:
            try:
                client.post(f"/api/v1/runs/{self._ids[client]}/marks", {"text": text})
            except AgentStatusError as error:
                if error.status == http.client.CONFLICT:
                    raise _MarkRefusedError(str(error)) from None
                raise

        with self._lock:
            self._for_each(self._answering(), mark, "cannot mark the run")

    def end(self) -> None:
        """End the run on all agents, and close the clients."""
        self._ended.set()
        if self._renewing.is_alive():
            self._renewing.join()
        problem = "cannot end the run, which stays active until its lease expires"
        with self._lock:
            self._for_each(list(self._ids), lambda client: self._change(client, "end"), problem)
        for client in self._clients:
            client.close()

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            # A failure is not reported, because the next renewal may succeed before the lease expires.
            silent = list(self._silent)
            with self._lock:
                self._for_each(self._answering(), lambda client: self._change(client, "lease"), "")
            self._for_each(silent, lambda client: self._change(client, "lease"), "")

    def _answering(self) -> list[AgentClient]:
        return [client for client in list(self._ids) if client not in self._silent]

    def _change(self, client: AgentClient, change: str) -> None:
        """Send a change that only an active run accepts. Raises AgentError and _EndedEarlyError."""
        try:
            client.post(f"/api/v1/runs/{self._ids[client]}/{change}", {})
        except AgentStatusError as error:
            if error.status in (http.client.CONFLICT, http.client.NOT_FOUND):
                raise _EndedEarlyError from None
            raise

    def _for_each(self, clients: Sequence[AgentClient], act: Callable[[AgentClient], object], problem: str) -> None:
        """Call `act` for all clients in parallel.

        Reports a failure as `problem` with its reason, unless `problem` is empty. An agent on which the run has ended
        early is reported once and then left out. Of the marks that an agent refuses, only the first is reported: there
        may be room for a shorter one, and if the run has ended, the next renewal reports that.
        """

        def attempt(client: AgentClient) -> str:
            try:
                act(client)
            except _EndedEarlyError:
                self._ids.pop(client, None)
                return (
                    f"the run ended early on {client.address.url}: its lease expired, or a client ended or deleted it"
                )
            except _MarkRefusedError as error:
                is_first = client not in self._refusing
                self._refusing.add(client)
                return f"{problem}: {error}" if is_first else ""
            except AgentError as error:
                reason = str(error)
            except (KeyError, TypeError):
                reason = f"{client.address.url}: the response does not describe a run"
            else:
                self._silent.discard(client)
                return ""
            self._silent.add(client)
            return f"{problem}: {reason}" if problem else ""

        if not clients:
            return
        with ThreadPoolExecutor(min(MAX_PARALLEL, len(clients))) as pool:
            for text in filter(None, pool.map(attempt, clients)):
                self._report(text)

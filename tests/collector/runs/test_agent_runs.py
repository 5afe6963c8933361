"""A run continues if agents fail; each failure is reported once."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from collector.agents import agent_client
from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient, AgentRuns, AgentStatusError
from collector.agents.agent_connection import AgentError
from collector.http.access import Access

EARLY = "the run ended early on {}: its lease expired, or a client ended or deleted it"


class FakeAgent(AgentClient):
    """An agent that accepts all changes except those with an error in `errors`.

    errors   errors by the last segment of the path: runs, marks, lease or end.
    changes  the last segments of the paths of all changes requested.
    renewed  set when a lease is renewed.
    """

    def __init__(self, host: str, **errors: AgentError) -> None:
        super().__init__(parse_address(host, "http"), Access())
        self.errors = errors
        self.changes: list[str] = []
        self.renewed = threading.Event()

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        change = path.rpartition("/")[2]
        self.changes.append(change)
        if change in self.errors:
            raise self.errors[change]
        if change == "lease":
            self.renewed.set()
        return {"id": "1"}


class FakeAgentFailingAtMark(FakeAgent):
    """An agent that renews leases until it receives a mark, which it refuses; then it refuses renewals as well."""

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        if path.endswith("/marks") and "marks" in self.errors:
            self.errors["lease"] = self.errors["marks"]
        return super().post(path, content)


@pytest.mark.parametrize("status", [404, 409])
def test_a_run_that_ended_early_is_reported_once_and_not_changed_again(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RENEW_EVERY_S", 0.001)
    reports: list[str] = []
    reported = threading.Event()

    def report(text: str) -> None:
        reports.append(text)
        reported.set()

    ended = FakeAgent("h1", lease=AgentStatusError(f"HTTP {status}", status))
    active = FakeAgent("h2")
    runs = AgentRuns([ended, active], report)
    runs.begin("ramp")
    assert reported.wait(60)
    active.renewed.clear()
    assert active.renewed.wait(60)
    runs.mark("more")
    runs.end()
    assert reports == [EARLY.format(ended.address.url)]
    assert ended.changes == ["runs", "lease"]
    assert active.changes[-1] == "end"
    assert "marks" in active.changes


def test_an_agent_that_fails_receives_no_marks_until_it_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "RENEW_EVERY_S", 0.001)
    failing = FakeAgentFailingAtMark("h1", marks=AgentError("refused"))
    active = FakeAgent("h2")
    reports: list[str] = []
    runs = AgentRuns([failing, active], reports.append)
    runs.begin("ramp")
    for _ in range(3):
        runs.mark("more")
    assert (failing.changes.count("marks"), active.changes.count("marks")) == (1, 3)
    assert reports == ["cannot mark the run: refused"]
    failing.errors.clear()
    assert failing.renewed.wait(60)
    failing.renewed.clear()
    # The second renewal begins only after the first one has been processed.
    assert failing.renewed.wait(60)
    runs.mark("more")
    runs.end()
    assert failing.changes.count("marks") == 2
    assert len(reports) == 1


def test_an_agent_that_has_no_room_for_a_mark_receives_later_ones() -> None:
    agent = FakeAgent("h1", marks=AgentStatusError("HTTP 409", 409))
    reports: list[str] = []
    runs = AgentRuns([agent], reports.append)
    runs.begin("ramp")
    for _ in range(3):
        runs.mark("more")
    runs.end()
    assert agent.changes.count("marks") == 3
    assert reports == ["cannot mark the run: HTTP 409"]


@pytest.mark.parametrize("status", [404, 409])
def test_a_run_that_an_agent_has_already_ended_is_reported_at_its_end(status: int) -> None:
    reports: list[str] = []
    agent = FakeAgent("h1", end=AgentStatusError(f"HTTP {status}", status))
    runs = AgentRuns([agent], reports.append)
    runs.begin("ramp")
    runs.end()
    assert reports == [EARLY.format(agent.address.url)]


def test_other_failures_of_renewals_are_not_reported_because_the_next_one_may_succeed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_client, "RENEW_EVERY_S", 0.001)
    failing = FakeAgent("h1", lease=AgentStatusError("HTTP 429", 429))
    unreachable = FakeAgent("h2", lease=AgentError("refused"), end=AgentError("refused"))
    active = FakeAgent("h3")
    reports: list[str] = []
    runs = AgentRuns([failing, unreachable, active], reports.append)
    runs.begin("ramp")
    assert active.renewed.wait(60)
    runs.end()
    assert reports == ["cannot end the run, which stays active until its lease expires: refused"]
    assert failing.changes[-1] == "end"

"""A source that reads a Cassandra node: discovers its MBeans, schedules requests, and sends one POST per tick.

It also reads facts about the node: address, data directories, process and peers.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from collector.model.clock import EARLY_S, MAX_PAUSE_S, Clock, longer_pause_s
from collector.model.mbean import MAX_NUMBER, Labels, MBean, MBeanRequest, mbean_requests
from collector.model.metric import ScrapeInterval, Values
from collector.model.snapshot import JOLOKIA_SOURCE, Scrape, SourceError
from collector.node.host.cassandra_processes import NodeFacts, local_nodes, local_pid
from collector.node.jolokia.client import Jolokia, JolokiaError
from collector.node.jolokia.table_budget import Ranking, Remainder
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.node.metrics.jvm import START_TIME
from collector.node.metrics.storage import SCHEMA_VERSION, SERVICE, members
from collector.node.selection import Selection, Table
from collector.printable import one_line

RELEASE = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "ReleaseVersion"})
"""The request for Cassandra's version."""
FORBIDDEN, NOT_FOUND = 403, 404
# The name prefix of metrics that every JVM has, even one that does not run Cassandra.
JVM = "cassandra_jvm_"
SEARCH_TIMEOUT_S = 10.0
# A search visits all MBean names, and a node with a thousand tables has 200,000 of them. The regular pause after a
# search is therefore at least its duration times SEARCH_REST (soon after a change) or LONG_SEARCH_REST (at other
# times).
SEARCH_REST, LONG_SEARCH_REST = 20, 500
SCHEMA, ALL = "schema", "all"
# Maximum number of requests in one tick, not counting those that are sent on every tick or that rank tables.
RARE_PER_TICK = 300


def read_facts(jolokia: Jolokia, timeout_s: float) -> NodeFacts:
    """Return the node's facts; a missing attribute leaves a fact empty. Raises JolokiaError as `Jolokia.post` does."""
    attributes = {
        SERVICE: ["LocalHostId", "EndpointToHostId", "AllDataFileLocations"],
        "java.lang:type=Runtime": ["Name", "StartTime"],
    }
    requests = [json.dumps({"type": "read", "mbean": bean, "attribute": names}) for bean, names in attributes.items()]
    service, runtime = (_mapping(response.get("value")) for response in jolokia.post(requests, timeout_s))
    local_id = service.get("LocalHostId")
    host_ids = _mapping(service.get("EndpointToHostId"))
    address = next((_address(endpoint) for endpoint, host_id in host_ids.items() if host_id == local_id), "")
    directories = service.get("AllDataFileLocations")
    start_ms = runtime.get("StartTime")
    started_ms = start_ms if isinstance(start_ms, int) and 0 <= start_ms <= MAX_NUMBER else 0
    return NodeFacts(
        address,
        tuple(Path(path) for path in directories if isinstance(path, str)) if isinstance(directories, list) else (),
        str(runtime.get("Name", "")),
        started_ms,
        peers=_addresses(host_ids),
    )


def _addresses(endpoints: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_address(endpoint) for endpoint in endpoints}))


def _address(endpoint: str) -> str:
    """Return an endpoint's address without the host name and slash that Java may put before it."""
    return endpoint.lstrip("/").rpartition("/")[2]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _ScheduledRequest:
    """A request, its due time, and its current pause if the node lacks the MBean or refuses the request.

    `never_pauses` is set for requests that are sent on every tick regardless of the response.
    """

    def __init__(self, request: MBeanRequest, *, never_pauses: bool) -> None:
        self.request = request
        self.never_pauses = never_pauses
        self.due_s = 0.0
        self.pause_s = 0.0
        self.answered = False

    def reschedule(self, status: object, now_s: float, spread: float) -> None:
        """Set the next due time after a response; `spread` (0 to 1) differs between requests, to stagger them."""
        period_s = self.request.scrape_interval.value
        if self.never_pauses or status not in (FORBIDDEN, NOT_FOUND):
            # The first period of a rare request is shortened by an amount that differs between requests, so that they
            # do not all remain due in the same tick.
            is_first = not self.answered and period_s > ScrapeInterval.OFTEN.value
            self.due_s = now_s + period_s * (0.5 + spread / 2 if is_first else 1.0)
            self.pause_s, self.answered = 0.0, True
        else:
            self.pause_s = longer_pause_s(self.pause_s)
            self.due_s = now_s + max(self.pause_s, period_s)


class MBeanSource:
    """Reads Cassandra's metrics through Jolokia.

    MBean names are searched for at first contact and after a restart or schema change (repeatedly, with pauses of
    1, 2, 4 … s). At other times, they are searched for once a minute (less often if searches take long) to find MBeans
    that appear on first use. If the node lacks a requested MBean or refuses the request, the request is retried after
    1, 2, 4 … 60 s. Decaying percentiles are read only once the node has refused to return bucket counts.
    """

    name = JOLOKIA_SOURCE
    kind = "jolokia"
    paced = False

    def __init__(
        self,
        jolokia: Jolokia,
        beans: Sequence[MBean],
        selection: Selection,
        clock: Clock,
        pid_of: Callable[[NodeFacts], int | None] = lambda facts: local_pid(facts, (), local_nodes()),
    ) -> None:
        """Create the source without contacting the node; `pid_of` returns the PID of the node on this machine."""
        self.sources = [self]
        self._pid_of = pid_of
        wanted = selection.metrics
        self._jolokia = jolokia
        change_beans = [START_TIME, SCHEMA_VERSION]
        # The requests that detect restarts and schema changes.
        self._change_requests = mbean_requests(
            change_beans, {bean.family: [{}] for bean in change_beans}, lambda *_: ScrapeInterval.TICK
        )
        selected = [bean for bean in beans if wanted is None or bean.metric.name in wanted]
        self._decayed = [bean for bean in selected if bean.metric.name in DECAYED]
        self._beans = [bean for bean in selected if bean not in change_beans and bean not in self._decayed]
        self._selection = selection
        self._clock = clock
        self._schedule: list[_ScheduledRequest] = []
        self._known: dict[str, list[Labels]] = {}
        self._ranking = Ranking(selection)
        self._remainder = Remainder()
        self._next_search_s = self._rested_at_s = 0.0
        self._search_pause_s = 0.0
        # Which names may have changed recently: SCHEMA (those that depend on the schema), ALL or "" (none); initially
        # SCHEMA, because the schema may have changed just before the first contact.
        self._changed = SCHEMA
        self._origin = ""
        self._schema = ""
        self.refused = ""
        self.members: frozenset[str] = frozenset()

    @property
    def host(self) -> str:
        """The Jolokia agent's host name or address."""
        return self._jolokia.host

    def learn(self, timeout_s: float) -> NodeFacts:
        """Return the facts about the node, including its process if it runs on this host, and search for its MBeans.

        Raises SourceError if the node does not respond or refuses the search, or if the JVM is not a Cassandra node.
        """
        facts = read_facts(self._jolokia, timeout_s)
        if not facts.address and not facts.directories:
            raise SourceError(self._no_cassandra())
        pid = self._pid_of(facts)
        self.search(timeout_s)
        return replace(facts, pid=pid, is_local=pid is not None, origin=str(facts.started_ms))

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Return the sorted addresses of all nodes in the ring. Raises JolokiaError if there is no usable response."""
        request = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "EndpointToHostId"})
        (response,) = self._jolokia.post([request], timeout_s)
        host_ids = response.get("value")
        if not isinstance(host_ids, dict) or not host_ids:
            raise JolokiaError(f"{self._jolokia.url}: the EndpointToHostId attribute is missing or malformed")
        return _addresses(host_ids)

    def close(self) -> None:
        self._jolokia.close()

    def read(self, timeout_s: float) -> Scrape:
        """Read the metrics that are due.

        A search for MBeans, if one is due, may make this call take longer than `timeout_s` (see `search`). Raises
        SourceError if there is no usable response in time, or if the JVM is not a Cassandra node.
        """
        began_s = self._clock.monotonic_s()

        def left_s() -> float:
            return timeout_s - (self._clock.monotonic_s() - began_s)

        if not self._schedule:
            # Send a short request first, so that a hung node is detected within the tick; the search may wait
            # longer than that.
            self._jolokia.post([request.body for request in self._change_requests], left_s())
            self.search(left_s())
        due, ranked = self._due(began_s), self._ranking.due(began_s)
        bodies = [scheduled.request.body for scheduled in due] + [request.body for _, request in ranked]
        responses = self._jolokia.post(bodies, left_s())
        now_s = self._clock.monotonic_s()
        values: Values = {}
        for index, (scheduled, response) in enumerate(zip(due, responses, strict=False)):
            values.update(scheduled.request.values(response))
            self.members = members(response) or self.members
            scheduled.reschedule(response.get("status"), now_s, index / len(due))
            if response.get("status") == FORBIDDEN and scheduled.request.is_operation:
                self.refused = one_line(response.get("error", "no reason given"))
        if all(series[0].startswith(JVM) for series in values):
            raise SourceError(self._no_cassandra())
        counts = zip(ranked, responses[len(due) :], strict=True)
        if self._ranking.update([(table, request.values(response)) for (table, request), response in counts], now_s):
            self._rebuild_schedule()
        problem = self._follow_changes(values, now_s, left_s)
        values.update(self._remainder.counters(values))
        return Scrape(self.name, now_s, values, self._origin, problem)

    def _no_cassandra(self) -> str:
        causes = "not a Cassandra node or is still starting, or Jolokia's policy denies access to its MBeans"
        return f"{self._jolokia.url}: this JVM is {causes}"

    def provides(self, metric: str) -> bool:
        """Return whether any of the metric's series is requested."""
        return any(series[0] == metric for scheduled in self._schedule for _, series in scheduled.request.parts)

    def tables(self) -> set[Table]:
        """Return (keyspace, "") for each keyspace and, if table metrics are selected, each (keyspace, table)."""
        known = [labels for family in self._known.values() for labels in family if "keyspace" in labels]
        tables = {(labels["keyspace"], labels.get("table", "")) for labels in known}
        return tables | {(keyspace, "") for keyspace, _ in tables}

    def _due(self, now_s: float) -> list[_ScheduledRequest]:
        due = [scheduled for scheduled in self._schedule if scheduled.due_s <= now_s + EARLY_S]
        often = [scheduled for scheduled in due if scheduled.request.scrape_interval is ScrapeInterval.TICK]
        rare = [scheduled for scheduled in due if scheduled.request.scrape_interval is not ScrapeInterval.TICK]
        rare.sort(key=lambda scheduled: scheduled.due_s)
        # Rare requests come first, so that keyspaces are read before their tables, however long the response takes.
        # Operations between the two readings are then missing from "(others)" until the keyspace is read again; in the
        # opposite order, they would be counted twice.
        return sorted(rare[:RARE_PER_TICK] + often, key=lambda scheduled: -scheduled.request.scrape_interval.value)

    def _follow_changes(self, values: Values, now_s: float, left_s: Callable[[], float]) -> str:
        """Detect restarts and schema changes, and search for names if due; return the error if that fails, else ""."""
        previous = self._origin, self._schema
        self._origin = str(values.get((START_TIME.metric.name,), self._origin))
        # A starting node has no schema at first; its MBeans appear together with the schema.
        self._schema = str(values.get((SCHEMA_VERSION.metric.name,), ""))
        if previous[0] and previous != (self._origin, self._schema):
            self._expect_new_names(has_restarted=previous[0] != self._origin, had_schema=bool(previous[1]))
        if self.refused and self._decayed:
            # Fall back to decaying percentiles, which every view marks as such.
            self._beans, self._decayed = self._beans + self._decayed, []
            self._next_search_s, self._changed = 0.0, ALL
        if now_s < self._next_search_s:
            return ""
        try:
            self.search(left_s(), tables=bool(self._changed), others=self._changed != SCHEMA)
        except SourceError as error:
            return f"search for new MBeans failed: {error}"
        return ""

    def _expect_new_names(self, *, has_restarted: bool, had_schema: bool) -> None:
        """Schedule repeated searches after a restart or schema change, because new MBeans may appear with a delay."""
        is_starting = has_restarted or not had_schema
        # Pause between searches even while the schema keeps changing.
        self._next_search_s = 0.0 if is_starting else self._rested_at_s
        self._search_pause_s = 0.0
        self._changed = ALL if is_starting or self._changed == ALL else SCHEMA
        if has_restarted:
            self._ranking.reset()
            self._remainder = Remainder()
        for scheduled in self._schedule:
            if scheduled.pause_s:
                scheduled.due_s = scheduled.pause_s = 0.0

    def search(self, timeout_s: float, *, tables: bool = True, others: bool = True) -> None:
        """Search the node for label values and rebuild the schedule.

        `tables` selects the names that change only with the schema, and `others` those that appear on first use. Waits
        for up to `timeout_s` or 10 s, whichever is longer. Raises SourceError if the node does not respond or refuses
        to search.
        """
        families: dict[str, MBean] = {}
        searches: dict[str, str] = {}
        for bean in self._beans:
            is_wanted = tables if "keyspace" in bean.metric.labels else others
            if is_wanted or bean.family not in self._known:
                families.setdefault(bean.family, bean)
                if bean.search:
                    # Beans with the same search key share one search. It uses the first bean's pattern, because that
                    # bean's MBean exists in every version of Cassandra.
                    searches.setdefault(bean.search_key, bean.search)
        bodies = [json.dumps({"type": "search", "mbean": pattern}) for pattern in searches.values()]
        began_s = self._clock.monotonic_s()
        responses = self._jolokia.post(bodies, max(timeout_s, SEARCH_TIMEOUT_S)) if bodies else []
        took_s = self._clock.monotonic_s() - began_s
        names = {key: _names(response) for key, response in zip(searches, responses, strict=True)}
        for family, bean in families.items():
            self._known[family] = bean.labels(names.get(bean.search_key, []))
        table_labels = (
            labels for bean in self._beans if "table" in bean.placeholders for labels in self._known[bean.family]
        )
        self._ranking.set_tables((labels["keyspace"], labels["table"]) for labels in table_labels)
        self._rebuild_schedule()
        self._schedule_next_search(took_s)

    def _schedule_next_search(self, took_s: float) -> None:
        is_repeated = self._search_pause_s > 0
        self._search_pause_s = longer_pause_s(self._search_pause_s)
        # A slow search is repeated only once.
        if self._search_pause_s >= MAX_PAUSE_S or (is_repeated and SEARCH_REST * took_s > self._search_pause_s):
            self._changed = ""
        rest_s = took_s * (SEARCH_REST if self._changed else LONG_SEARCH_REST)
        now_s = self._clock.monotonic_s()
        self._rested_at_s = now_s + took_s * SEARCH_REST
        self._next_search_s = now_s + max(self._search_pause_s, rest_s)

    def _rebuild_schedule(self) -> None:
        """Create the requests for all selected MBeans that have been found; existing requests keep their due times."""
        selection, active = self._selection, self._ranking.active

        def is_read(labels: Labels) -> bool:
            table = labels.get("keyspace", ""), labels.get("table", "")
            return "table" not in labels or table in active or selection.names(*table)

        # There may be thousands of tables, but only a few are read, so filter them once per family, not per bean.
        labels_by_family = {
            family: list(filter(is_read, family_labels)) for family, family_labels in self._known.items()
        }
        scrape_interval = partial(selection.scrape_interval, active=active)
        scheduled_by_body = {scheduled.request.body: scheduled for scheduled in self._schedule}
        self._schedule = []
        for request in self._change_requests:
            self._schedule.append(scheduled_by_body.get(request.body) or _ScheduledRequest(request, never_pauses=True))
        for request in mbean_requests(self._beans, labels_by_family, scrape_interval):
            scheduled = scheduled_by_body.get(request.body) or _ScheduledRequest(request, never_pauses=False)
            scheduled.request = request
            self._schedule.append(scheduled)


def _names(response: Mapping[str, Any]) -> list[str]:
    value = response.get("value")
    if response.get("status") != 200 or not isinstance(value, list):
        raise JolokiaError(f"search refused: {one_line(response.get('error', 'no reason given'))}")
    return [name for name in value if isinstance(name, str)]

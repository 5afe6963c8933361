"""The node itself as a source: which of the catalogue's MBeans it has, when to ask for each, and one POST a tick."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from collector.backoff import FIRST_PAUSE_S, LONGEST_PAUSE_S
from collector.cassandra.decaying_percentiles import DECAYED
from collector.cassandra.jvm import START_TIME
from collector.cassandra.storage import SCHEMA_VERSION, members
from collector.host.cassandra_processes import NodeFacts, local_nodes, local_pid
from collector.jolokia.client import Jolokia, JolokiaError
from collector.jolokia.mbean import Labels, MBean, MBeanRequest, mbean_requests
from collector.jolokia.node_facts import ask_facts, ask_peers
from collector.jolokia.table_budget import Ranking, Remainder
from collector.model.clock import EARLY_S, Clock
from collector.model.metric import ScrapeInterval, Values
from collector.model.snapshot import Scrape, SourceError
from collector.printable import one_line
from collector.sampling.selection import Selection, Table
from collector.sampling.source_names import JOLOKIA_SOURCE

FORBIDDEN, NOT_FOUND = 403, 404
# What any JVM has.
JVM = "cassandra_jvm_"
LOOK_TIMEOUT_S = 10.0
# Every search goes through all names there are, 200,000 with a thousand tables: for so many times what it took
# none is made, after a change and when nothing has changed.
RESTS, LONG_RESTS = 20, 500
SCHEMA, ALL = "schema", "all"
# Of what is read once a minute, at most so many requests ride along in one tick.
RARE_PER_TICK = 300


class _Entry:
    """A question, when to ask it next, and how long it has been put off since the node does not have it.

    `always` is for those that are never put off.
    """

    def __init__(self, question: MBeanRequest, *, always: bool) -> None:
        self.question = question
        self.always = always
        self.due_s = 0.0
        self.pause_s = 0.0
        self.asked = False

    def heard(self, status: object, now_s: float, spread: float) -> None:
        period_s = self.question.scrape_interval.value
        if self.always or status not in (FORBIDDEN, NOT_FOUND):
            # The first time each waits a little less, so that they do not all come due in the same tick again.
            at_first = not self.asked and period_s > ScrapeInterval.OFTEN.value
            self.due_s = now_s + period_s * (0.5 + spread / 2 if at_first else 1.0)
            self.pause_s, self.asked = 0.0, True
        else:
            self.pause_s = min(max(2 * self.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self.due_s = now_s + max(self.pause_s, period_s)


class MBeanSource:
    """Cassandra's metrics through Jolokia.

    Names are searched for at first contact, when the node was restarted or its schema changed (again after 1, 2,
    4 … s), and once a minute those of what appears on first use. What the node does not have is asked for again
    after 1, 2, 4 … 60 s. Decaying percentiles are asked for only once the bucket counts were refused.
    """

    name = JOLOKIA_SOURCE
    kind = "jolokia"
    paced = False

    def __init__(self, jolokia: Jolokia, beans: Sequence[MBean], selection: Selection, clock: Clock) -> None:
        self.sources = [self]
        wanted = selection.metrics
        self._jolokia = jolokia
        self._marks = [START_TIME, SCHEMA_VERSION]
        chosen = [bean for bean in beans if wanted is None or bean.metric.name in wanted]
        self._decayed = [bean for bean in chosen if bean.metric.name in DECAYED]
        self._beans = [bean for bean in chosen if bean not in self._marks and bean not in self._decayed]
        self._selection = selection
        self._clock = clock
        self._entries: list[_Entry] = []
        self._known: dict[str, list[Labels]] = {}
        self._ranking = Ranking(selection)
        self._remainder = Remainder()
        self._look_at_s = self._rested_at_s = 0.0
        self._look_pause_s = 0.0
        # What may have changed a short while ago, and so appear a little later: of the time before, nothing is known.
        self._changed = SCHEMA
        self._origin = ""
        self._schema = ""
        self.refused = ""
        self.members: frozenset[str] = frozenset()

    @property
    def host(self) -> str:
        """The name or address at which it is asked."""
        return self._jolokia.host

    def learn(self, timeout_s: float) -> NodeFacts:
        """Ask the node about itself, find its process here, and look for what it has.

        Raises SourceError when it does not answer.
        """
        facts = ask_facts(self._jolokia, timeout_s)
        if not facts.address and not facts.directories:
            raise SourceError(self._no_cassandra())
        pid = local_pid(facts, local_nodes())
        self.look(timeout_s)
        return replace(facts, pid=pid, here=pid is not None, origin=str(facts.started_ms))

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Ask the node for the addresses of its ring, sorted. Raises SourceError when it does not answer."""
        return ask_peers(self._jolokia, timeout_s)

    def close(self) -> None:
        """Leave the node."""
        self._jolokia.close()

    def read(self, timeout_s: float) -> Scrape:
        """Read what is due. Raises SourceError when the node does not answer usably within `timeout_s`."""
        began_s = self._clock.monotonic_s()

        def left_s() -> float:
            return timeout_s - (self._clock.monotonic_s() - began_s)

        if not self._entries:
            # A node that hangs shows it within the tick; one that answers may take its time to search.
            self._jolokia.ask([question.request for question in self._mark_questions()], left_s())
            self.look(left_s())
        asked, ranked = self._due(began_s), self._ranking.due(began_s)
        requests = [entry.question.request for entry in asked] + [question.request for _, question in ranked]
        answers = self._jolokia.ask(requests, left_s())
        now_s = self._clock.monotonic_s()
        values: Values = {}
        for position, (entry, answer) in enumerate(zip(asked, answers, strict=False)):
            values.update(entry.question.values(answer))
            self.members = members(answer) or self.members
            entry.heard(answer.get("status"), now_s, position / len(asked))
            if answer.get("status") == FORBIDDEN and entry.question.is_operation:
                self.refused = one_line(answer.get("error", "no reason given"))
        if all(series[0].startswith(JVM) for series in values):
            raise SourceError(self._no_cassandra())
        counts = zip(ranked, answers[len(asked) :], strict=True)
        if self._ranking.heard([(table, question.values(answer)) for (table, question), answer in counts], now_s):
            self._ask_anew()
        problem = self._keep_up(values, now_s, left_s)
        values.update(self._remainder.of(values))
        return Scrape(self.name, now_s, values, self._origin, problem)

    def _no_cassandra(self) -> str:
        return f"{self._jolokia.url}: a Jolokia, but of no Cassandra node (yet)"

    def provides(self, metric: str) -> bool:
        """Return whether any series of the metric is among the questions."""
        return any(series[0] == metric for entry in self._entries for _, series in entry.question.parts)

    def tables(self) -> set[Table]:
        """Return the keyspaces, each with "" and with its tables so far as the wanted metrics are about tables."""
        labels = [each for known in self._known.values() for each in known if "keyspace" in each]
        found = {(each["keyspace"], each.get("table", "")) for each in labels}
        return found | {(keyspace, "") for keyspace, _ in found}

    def _due(self, now_s: float) -> list[_Entry]:
        due = [entry for entry in self._entries if entry.due_s <= now_s + EARLY_S]
        often = [entry for entry in due if entry.question.scrape_interval is ScrapeInterval.TICK]
        rare = sorted(
            (entry for entry in due if entry.question.scrape_interval is not ScrapeInterval.TICK), key=lambda e: e.due_s
        )
        # The rarer first. So keyspaces come before their tables, however long the answer takes: what the tables did
        # meanwhile is then missing in the others until the next time, and not told twice.
        return sorted(rare[:RARE_PER_TICK] + often, key=lambda entry: -entry.question.scrape_interval.value)

    def _keep_up(self, values: Values, now_s: float, left_s: Callable[[], float]) -> str:
        """Notice restarts and schema changes, look for new names when it is time; return what went wrong."""
        before = self._origin, self._schema
        self._origin = str(values.get((START_TIME.metric.name,), self._origin))
        # A node that starts has no schema at first: that it has one now is the sign that the rest is coming too.
        self._schema = str(values.get((SCHEMA_VERSION.metric.name,), ""))
        if before[0] and before != (self._origin, self._schema):
            # What is new may appear a little later: it is looked for at once, and soon again.
            restarted = before[0] != self._origin
            starting = restarted or not before[1]
            # A schema that is still being made does not keep the node searching.
            self._look_at_s = 0.0 if starting else self._rested_at_s
            self._look_pause_s = 0.0
            self._changed = ALL if starting or self._changed == ALL else SCHEMA
            if restarted:
                self._ranking.forget()
                self._remainder = Remainder()
            for entry in self._entries:
                if entry.pause_s:
                    entry.due_s = entry.pause_s = 0.0
        if self.refused and self._decayed:
            # Better than nothing, and shown as what they are.
            self._beans, self._decayed = self._beans + self._decayed, []
            self._look_at_s, self._changed = 0.0, ALL
        if now_s < self._look_at_s:
            return ""
        try:
            self.look(left_s(), tables=bool(self._changed), others=self._changed != SCHEMA)
        except SourceError as error:
            return f"could not look for new names: {error}"
        return ""

    def look(self, timeout_s: float, *, tables: bool = True, others: bool = True) -> None:
        """Search the node for label values and make the questions anew; those that stay keep their pace.

        `tables` are the names that only change with the schema, `others` those that appear on first use. Takes as long
        as it must, whatever the interval. Raises SourceError when the node does not answer.
        """
        families: dict[str, MBean] = {}
        searches: dict[str, str] = {}
        for bean in self._beans:
            wanted = tables if "keyspace" in bean.metric.labels else others
            if wanted or bean.family not in self._known:
                families.setdefault(bean.family, bean)
                if bean.search:
                    # The first of a place is what every version has there.
                    searches.setdefault(bean.place, bean.search)
        requests = [json.dumps({"type": "search", "mbean": pattern}) for pattern in searches.values()]
        began_s = self._clock.monotonic_s()
        answers = self._jolokia.ask(requests, max(timeout_s, LOOK_TIMEOUT_S)) if requests else []
        took_s = self._clock.monotonic_s() - began_s
        found = {place: _names(answer) for place, answer in zip(searches, answers, strict=True)}
        for family, bean in families.items():
            self._known[family] = bean.labels(found.get(bean.place, []))
        found_tables = (each for bean in self._beans if "table" in bean.holes for each in self._known[bean.family])
        self._ranking.know((labels["keyspace"], labels["table"]) for labels in found_tables)
        self._ask_anew()
        again = self._look_pause_s > 0
        self._look_pause_s = min(max(2 * self._look_pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        # Where it costs the node much, once more is enough.
        if self._look_pause_s >= LONGEST_PAUSE_S or (again and RESTS * took_s > self._look_pause_s):
            self._changed = ""
        rest_s = took_s * (RESTS if self._changed else LONG_RESTS)
        now_s = self._clock.monotonic_s()
        self._rested_at_s = now_s + took_s * RESTS
        self._look_at_s = now_s + max(self._look_pause_s, rest_s)

    def _ask_anew(self) -> None:
        """Make the questions of all that is known and wanted; those that stay keep their pace."""
        selection, active = self._selection, self._ranking.active

        def is_read(labels: Labels) -> bool:
            table = labels.get("keyspace", ""), labels.get("table", "")
            return "table" not in labels or table in active or selection.names(*table)

        def scrape_interval(bean: MBean, labels: Mapping[str, str]) -> ScrapeInterval | None:
            return selection.scrape_interval(bean, labels, active)

        # Of thousands of tables few are read: the others are not gone through row by row.
        known = {family: [labels for labels in there if is_read(labels)] for family, there in self._known.items()}
        kept = {entry.question.request: entry for entry in self._entries}
        self._entries = []
        for question, always in [
            *((mark, True) for mark in self._mark_questions()),
            *((each, False) for each in mbean_requests(self._beans, known, scrape_interval)),
        ]:
            entry = kept.get(question.request) or _Entry(question, always=always)
            entry.question = question
            self._entries.append(entry)

    def _mark_questions(self) -> list[MBeanRequest]:
        """Return what tells restarts and schema changes, where the wanted metrics do not."""
        return mbean_requests(self._marks, {bean.family: [{}] for bean in self._marks}, lambda *_: ScrapeInterval.TICK)


def _names(answer: Mapping[str, Any]) -> list[str]:
    value = answer.get("value")
    if answer.get("status") != 200 or not isinstance(value, list):
        raise JolokiaError(f"search refused: {one_line(answer.get('error', 'no reason given'))}")
    return [name for name in value if isinstance(name, str)]

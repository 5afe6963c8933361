"""The node itself as a source: which of the catalogue's MBeans it has, when to ask for each, and one POST a tick."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.beans import Bean, Labels, Question, questions
from collector.clock import EARLY_S, Clock
from collector.jolokia import Jolokia, JolokiaError, one_line
from collector.model import Batch, SourceError, Tier, Values
from collector.sources.jvm import START_TIME
from collector.sources.storage import SCHEMA_VERSION

FORBIDDEN, NOT_FOUND = 403, 404
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LOOK_TIMEOUT_S = 2.0
# Of what is read once a minute, at most so many requests ride along in one tick.
RARE_PER_TICK = 300


@dataclass(frozen=True)
class Selection:
    """What of the catalogue is wanted: metrics by name (None: all), and what is watched every tick.

    With a keyspace only its own series are read; with a table (which needs the keyspace) only that table's.
    Without, keyspaces and tables other than Cassandra's own are read once a minute.
    """

    metrics: frozenset[str] | None = None
    keyspace: str = ""
    table: str = ""

    def tier(self, bean: Bean, labels: Mapping[str, str]) -> Tier | None:
        """Return how often to read this, or None for never."""
        tier = bean.metric.tier
        if tier is Tier.HOURLY or (self.metrics is not None and bean.metric.name not in self.metrics):
            return None
        keyspace, table = labels.get("keyspace"), labels.get("table")
        if keyspace is None:
            return tier
        if not self.keyspace:
            return None if keyspace == "system" or keyspace.startswith("system_") else Tier.SLOW
        if keyspace != self.keyspace or (self.table and table is not None and table != self.table):
            return None
        return tier


class _Entry:
    """A question, when to ask it next, and how long it has been put off since the node does not have it.

    `always` is for those that are never put off.
    """

    def __init__(self, question: Question, *, always: bool) -> None:
        self.question = question
        self.always = always
        self.due_s = 0.0
        self.pause_s = 0.0
        self.asked = False

    def heard(self, status: object, now_s: float, spread: float) -> None:
        period_s = self.question.tier.value
        if self.always or status not in (FORBIDDEN, NOT_FOUND):
            # The first time each waits a little less, so that they do not all come due in the same tick again.
            self.due_s = now_s + period_s * (1.0 if self.asked else 0.5 + spread / 2)
            self.pause_s, self.asked = 0.0, True
        else:
            self.pause_s = min(max(2 * self.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self.due_s = now_s + max(self.pause_s, period_s)


class NodeSource:
    """Cassandra's metrics through Jolokia.

    Names are searched for at first contact, when the node was restarted or its schema changed (again after 1, 2,
    4 … s), and once a minute those of what appears on first use. What the node does not have is asked for again
    after 1, 2, 4 … 60 s.
    """

    name = "cassandra"

    def __init__(self, jolokia: Jolokia, beans: Sequence[Bean], selection: Selection, clock: Clock) -> None:
        wanted = selection.metrics
        self._jolokia = jolokia
        self._beans = [bean for bean in beans if wanted is None or bean.metric.name in wanted]
        self._marks = [START_TIME, SCHEMA_VERSION]
        self._beans = [bean for bean in self._beans if bean not in self._marks]
        self._selection = selection
        self._clock = clock
        self._entries: list[_Entry] = []
        self._known: dict[str, list[Labels]] = {}
        self._look_at_s = 0.0
        self._look_pause_s = 0.0
        self._origin = ""
        self._schema = ""

    def read(self, timeout_s: float) -> Batch:
        """Read what is due. Raises SourceError when the node does not answer usably within `timeout_s`."""
        began_s = self._clock.monotonic_s()

        def left_s() -> float:
            return timeout_s - (self._clock.monotonic_s() - began_s)

        if not self._entries:
            # A node that hangs shows it within the tick; one that answers may take its time to search.
            self._jolokia.ask([question.request for question in self._mark_questions()], left_s())
            self.look(left_s())
        asked = self._due(began_s)
        answers = self._jolokia.ask([entry.question.request for entry in asked], left_s())
        now_s = self._clock.monotonic_s()
        values: Values = {}
        for position, (entry, answer) in enumerate(zip(asked, answers, strict=True)):
            values.update(entry.question.values(answer))
            entry.heard(answer.get("status"), now_s, position / len(asked))
        if not values:
            raise SourceError(f"{self._jolokia.url}: a Jolokia, but not of a Cassandra node")
        problem = self._keep_up(values, now_s, left_s)
        return Batch(self.name, now_s, values, self._origin, problem)

    def asks_for(self, metric: str) -> bool:
        """Return whether any series of the metric is among the questions."""
        return any(series[0] == metric for entry in self._entries for _, series in entry.question.parts)

    def _due(self, now_s: float) -> list[_Entry]:
        due = [entry for entry in self._entries if entry.due_s <= now_s + EARLY_S]
        often = [entry for entry in due if entry.question.tier is Tier.TICK]
        rare = sorted((entry for entry in due if entry.question.tier is not Tier.TICK), key=lambda e: e.due_s)
        return often + rare[:RARE_PER_TICK]

    def _keep_up(self, values: Values, now_s: float, left_s: Callable[[], float]) -> str:
        """Notice restarts and schema changes, look for new names when it is time; return what went wrong."""
        before = self._origin, self._schema
        self._origin = str(values.get((START_TIME.metric.name,), self._origin))
        # A node that starts has no schema at first: that it has one now is the sign that the rest is coming too.
        self._schema = str(values.get((SCHEMA_VERSION.metric.name,), ""))
        if before[0] and before != (self._origin, self._schema):
            # What is new may appear a little later: all is looked for at once, and soon again.
            self._look_at_s = self._look_pause_s = 0.0
            for entry in self._entries:
                if entry.pause_s:
                    entry.due_s = entry.pause_s = 0.0
        if now_s < self._look_at_s:
            return ""
        try:
            self.look(left_s(), tables=self._look_pause_s < LONGEST_PAUSE_S)
        except SourceError as error:
            return f"could not look for new names: {error}"
        return ""

    def look(self, timeout_s: float, *, tables: bool = True) -> None:
        """Search the node for label values and make the questions anew; those that stay keep their pace.

        Takes as long as it must, whatever the interval. Raises SourceError when the node does not answer.
        """
        searches = {
            bean.family: bean
            for bean in reversed(self._beans)
            if tables or "keyspace" not in bean.metric.labels or bean.family not in self._known
        }
        asked = [bean for bean in searches.values() if bean.search]
        requests = [json.dumps({"type": "search", "mbean": bean.search}) for bean in asked]
        answers = self._jolokia.ask(requests, max(timeout_s, LOOK_TIMEOUT_S)) if requests else []
        found = {bean.family: _names(answer) for bean, answer in zip(asked, answers, strict=True)}
        for family, bean in searches.items():
            self._known[family] = bean.labels(found.get(family, []))
        wanted = questions(self._beans, self._known, self._selection.tier)
        kept = {entry.question.request: entry for entry in self._entries}
        self._entries = []
        for question, always in [
            *((mark, True) for mark in self._mark_questions()),
            *((each, False) for each in wanted),
        ]:
            entry = kept.get(question.request) or _Entry(question, always=always)
            entry.question = question
            self._entries.append(entry)
        self._look_pause_s = min(max(2 * self._look_pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self._look_at_s = self._clock.monotonic_s() + self._look_pause_s

    def _mark_questions(self) -> list[Question]:
        """Return what tells restarts and schema changes, where the wanted metrics do not."""
        return questions(self._marks, {bean.family: [{}] for bean in self._marks}, lambda *_: Tier.TICK)


def _names(answer: Mapping[str, Any]) -> list[str]:
    value = answer.get("value")
    if answer.get("status") != 200 or not isinstance(value, list):
        raise JolokiaError(f"search refused: {one_line(answer.get('error', 'no reason given'))}")
    return [name for name in value if isinstance(name, str)]

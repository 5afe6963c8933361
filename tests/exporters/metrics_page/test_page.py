"""The /metrics page: rendered once per tick, the same for all clients, with the agent's self-metrics."""

import gzip
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from collector.model.metric import Values
from collector.model.snapshot import Event, Identity, Scrape, Snapshot, Tick
from collector.node.catalogue import CATALOGUE
from collector.node.selection import Selection
from exporters.metrics_page.metric_family import CurrentValues, UpperBounds
from exporters.metrics_page.page import LatestValues, Page
from exporters.metrics_page.rendering import Options, Rendering
from exporters.metrics_page.self_metrics import AgentHealth, JournalHealth, RunTimes, SinkHealth
from tests.collector.node.jolokia.captured_node import read as captured
from tests.exporters.golden import check
from tests.exporters.metrics_page.parsed import one_of_each, parsed

IDENTITY = Identity("c", "dc1", "r1", "10.0.0.1")
NODE = {"cluster": "c", "dc": "dc1", "rack": "r1", "node": "10.0.0.1"}
SINKS = (SinkHealth("a", up=False, lag_s=2.5, points=10, failures=3, refused_points=1, lost_ticks=4, reason="gone"),)
HEALTH = AgentHealth("1.2.3", JournalHealth(1, 2, 3000), SINKS)


class Agent:
    """A page with simulated time and ticks, and the number of times that it has asked for the agent's health."""

    def __init__(self, options: Options | None = None, health: AgentHealth = HEALTH) -> None:
        self.now_s = 0.0
        self.health_calls = 0
        self._health = health
        self.wall_s = 0.0
        self.interruptions_s: list[float] = []
        self.page = Page(
            options or Options(),
            CollectorRegistry(),
            self._health_of_agent,
            print,
            lambda: self.now_s,
            wall_s=self._wall_time_s,
        )

    def _wall_time_s(self) -> float:
        """Return the wall clock's time; the process is interrupted after that."""
        time_s = self.wall_s + self.now_s
        self.now_s += self.interruptions_s.pop() if self.interruptions_s else 0.0
        return time_s

    def _health_of_agent(self) -> AgentHealth:
        self.health_calls += 1
        return self._health

    def tick(self, values: Values, identity: Identity = IDENTITY, late_s: float = 0.0, problem: str = "") -> None:
        self.now_s += 1
        scrape = Scrape("node", self.now_s, values, problem=problem, wall_s=0.5, cpu_s=0.25)
        time_s = self.wall_s + self.now_s
        self.page.add(Snapshot("10.0.0.1", Tick(time_s, late_s, missed=1), (scrape,)), identity)

    def text(self, *, openmetrics: bool = False) -> str:
        return self.page.get(openmetrics=openmetrics, compressed=False).decode()

    def value(self, name: str, **labels: str) -> float | None:
        return parsed(self.text()).of(name, **{**NODE, **labels})


HINTS = ("cassandra_hints_total",)


@pytest.mark.parametrize("openmetrics", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_tick_is_rendered_once(openmetrics: bool, compressed: bool) -> None:
    agent = Agent()
    agent.tick({HINTS: 1})
    assert agent.health_calls == 0
    first = agent.page.get(openmetrics=openmetrics, compressed=compressed)
    assert agent.page.get(openmetrics=openmetrics, compressed=compressed) is first
    assert agent.health_calls == 1
    agent.tick({HINTS: 2})
    assert agent.health_calls == 1
    assert agent.page.get(openmetrics=openmetrics, compressed=compressed) != first


@pytest.mark.parametrize("openmetrics", [False, True])
def test_the_gzipped_page_has_the_same_content(openmetrics: bool) -> None:
    agent = Agent()
    agent.tick(one_of_each())
    packed = agent.page.get(openmetrics=openmetrics, compressed=True)
    assert gzip.decompress(packed).decode() == agent.text(openmetrics=openmetrics)


def test_both_formats_have_the_same_values() -> None:
    agent = Agent()
    agent.tick(one_of_each())
    text, openmetrics = parsed(agent.text()), parsed(agent.text(openmetrics=True), openmetrics=True)
    # OpenMetrics does not allow a count without a sum, and the process metrics change between the two requests.
    only = {name for name, _ in text.values.keys() - openmetrics.values.keys()}
    assert openmetrics.values.keys() <= text.values.keys()
    assert all(name.endswith("_count") for name in only)
    for key, value in openmetrics.values.items():
        assert key[0].startswith("process_") or text.values[key] == value
    assert agent.text(openmetrics=True).endswith("\n# EOF\n")
    assert "# EOF" not in agent.text()


def test_cached_and_new_values_are_right_on_every_tick() -> None:
    agent = Agent()
    durations = ("cassandra_client_request_duration_seconds", "Read")
    count = "cassandra_client_request_duration_seconds_count"
    for number in range(1, 6):
        agent.tick({HINTS: number, ("cassandra_load_bytes",): 7, durations: (number // 2,) * 128})
        assert agent.value("cassandra_hints_total") == number
        assert agent.value("cassandra_load_bytes") == 7
        assert agent.value(count, operation="Read") == 128 * (number // 2)


def test_the_labels_of_all_series_follow_the_nodes_identity() -> None:
    agent = Agent()
    agent.tick({HINTS: 1}, Identity(node="n"))
    assert {labels - {("node", "n")} == labels for _, labels in parsed(agent.text()).values} == {False}
    agent.tick({HINTS: 1})
    assert agent.value("cassandra_hints_total") == 1
    assert all(set(NODE.items()) <= labels for _, labels in parsed(agent.text()).values)


def test_before_the_first_tick_there_are_only_self_metrics() -> None:
    exposition = parsed(Agent().text())
    assert exposition.of("casstat_build_info", version="1.2.3") == 1
    assert exposition.of("casstat_ticks_total") == 0
    assert not [name for name, _ in exposition.values if not name.startswith(("casstat_", "process_"))]


def test_when_ticks_stop_only_self_metrics_remain() -> None:
    agent = Agent()
    agent.tick({HINTS: 1})
    assert agent.value("cassandra_hints_total") == 1
    agent.now_s += 100
    assert agent.value("cassandra_hints_total") is None
    assert agent.value("casstat_ticks_total") == 1
    agent.tick({HINTS: 2})
    assert agent.value("cassandra_hints_total") == 2


def test_ticks_and_sources_are_counted() -> None:
    agent = Agent()
    agent.tick({HINTS: 1}, late_s=0.004)
    agent.tick({}, late_s=0.3, problem="no answer")
    assert agent.value("casstat_ticks_total") == 2
    assert agent.value("casstat_ticks_missed_total") == 2
    assert agent.value("casstat_tick_late_seconds") == 0.3
    buckets = {le: agent.value("casstat_tick_lateness_seconds_bucket", le=le) for le in ("0.002", "0.005", "+Inf")}
    assert buckets == {"0.002": 0, "0.005": 1, "+Inf": 2}
    assert agent.value("casstat_tick_lateness_seconds_sum") == pytest.approx(0.304)
    assert agent.value("casstat_source_up", source="node") == 0
    assert agent.value("casstat_source_wall_seconds_total", source="node") == 1.0
    assert agent.value("casstat_source_cpu_seconds_total", source="node") == 0.5
    assert agent.value("casstat_source_errors_total", source="node") == 1
    agent.tick({HINTS: 1}, problem="a part is missing")
    assert agent.value("casstat_source_up", source="node") == 1
    assert agent.value("casstat_source_errors_total", source="node") == 2


def test_journal_and_sink_metrics_match_the_agents_health() -> None:
    agent = Agent()
    agent.tick({})
    journal = [agent.value(f"casstat_journal_{name}") for name in ("lost_ticks_total", "removed_files_total", "bytes")]
    assert journal == [1, 2, 3000]
    names = "up", "lag_seconds", "points_total", "failures_total", "refused_points_total", "lost_ticks_total"
    assert [agent.value(f"casstat_sink_{name}", sink="a") for name in names] == [0, 2.5, 10, 3, 1, 4]
    assert (agent.value("process_resident_memory_bytes") or 0) > 1 << 20


def test_events_are_counted_by_kind() -> None:
    agent = Agent()
    agent.tick({HINTS: 1})
    assert agent.value("casstat_events_total", kind="restart") == 0
    # Unless the node's log is read, the number of compactions is unknown.
    assert agent.value("casstat_events_total", kind="compaction") is None
    snapshot = Snapshot("10.0.0.1", Tick(9.0), (Scrape("log", 9.0),))
    agent.page.add(snapshot, IDENTITY, (Event("restart", ""), Event("restart", ""), Event("compaction", "")))
    counts = [agent.value("casstat_events_total", kind=kind) for kind in ("restart", "compaction", "flush")]
    assert counts == [2, 1, 0]


def test_runs_have_their_begin_end_and_marks() -> None:
    runs = (RunTimes("1", "ramp", 10.0, 20.5, ((12.0, "warm"),)), RunTimes("2", "soak", 30.0))
    agent = Agent(health=AgentHealth("1", runs=runs))
    agent.tick({})
    times = {
        (edge, name): agent.value(f"casstat_run_{edge}_time_seconds", run=name, id=number)
        for edge in ("begin", "end")
        for name, number in (("ramp", "1"), ("soak", "2"))
    }
    assert times == {("begin", "ramp"): 10.0, ("begin", "soak"): 30.0, ("end", "ramp"): 20.5, ("end", "soak"): None}
    assert agent.value("casstat_run_mark_time_seconds", run="ramp", id="1", mark="warm") == 12.0


@pytest.mark.parametrize(("machine", "expected"), [("boot", "boot"), ("", f"of {NODE['node']}")])
def test_nodes_on_unknown_machines_do_not_share_a_machine(machine: str, expected: str) -> None:
    agent = Agent(health=AgentHealth("1", machine=machine, network="net:[1]"))
    agent.tick({})
    assert agent.value("casstat_placement_info", machine=expected, network="net:[1]") == 1


def test_without_journal_and_sinks_their_metrics_are_absent() -> None:
    agent = Agent(health=AgentHealth("1"))
    agent.tick({})
    assert "casstat_journal" not in agent.text()
    assert "casstat_sink" not in agent.text()


def test_the_page_does_not_exceed_the_limit() -> None:
    agent = Agent(Options(limit=1000))
    for count in (0, 100, 200, 3000, 50):
        agent.tick({("cassandra_table_live_sstables", "ks", f"t{number}"): 1 for number in range(count)})
        exposition = parsed(agent.text())
        assert len(exposition.values) == exposition.of("casstat_series", **NODE)
        assert len(exposition.values) <= 1000


@pytest.mark.parametrize("openmetrics", [False, True])
def test_names_that_are_not_valid_utf8_are_escaped(openmetrics: bool) -> None:
    agent = Agent(health=AgentHealth("1", sinks=(SinkHealth("s\udcff"),)))
    agent.tick({HINTS: 1}, Identity("\ud800", node='n\0"\n'))
    exposition = parsed(agent.text(openmetrics=openmetrics), openmetrics=openmetrics)
    assert exposition.of("cassandra_hints_total", cluster="\\ud800", node='n\ufffd"\n') == 1


def test_concurrent_requests_get_consistent_pages() -> None:
    agent = Agent()
    agent.tick({HINTS: 0, ("cassandra_cql_regular_total",): 0})
    wrong: list[object] = []
    ended = threading.Event()

    def ask(openmetrics: bool, compressed: bool) -> None:
        while not ended.is_set():
            page = agent.page.get(openmetrics=openmetrics, compressed=compressed)
            text = (gzip.decompress(page) if compressed else page).decode()
            lines = [line for line in text.split("\n") if line.startswith(("cassandra_hints", "cassandra_cql_regular"))]
            if len({line.rsplit(" ")[-1] for line in lines}) != 1 or len(lines) != 2:
                wrong.append(lines)

    threads = [threading.Thread(target=ask, args=(o, c)) for o in (False, True) for c in (False, True)]
    for thread in threads:
        thread.start()
    for number in range(100):
        agent.tick({HINTS: number, ("cassandra_cql_regular_total",): number})
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "openmetrics", "values"),
    [("captured", False, captured("5.0.6", Selection(tables=1))), ("everything", True, one_of_each())],
)
def test_pages_match_their_golden_files(name: str, openmetrics: bool, values: Values) -> None:
    agent = Agent(Options(UpperBounds((0.0001, 0.001, 0.01, 0.1, 1.0))))
    agent.tick(values, late_s=0.004)
    lines = agent.text(openmetrics=openmetrics).splitlines(keepends=True)
    # The process metrics differ from run to run.
    check(f"prometheus.{name}.txt", "".join(line for line in lines if " process_" not in f" {line}"))


def times(agent: Agent, openmetrics: bool = False) -> dict[str, float | None]:
    """Return the time of the last sample of each metric on the page."""
    families = (openmetrics_families if openmetrics else text_families)(agent.text(openmetrics=openmetrics))
    return {
        sample.name: None if sample.timestamp is None else float(sample.timestamp)
        for family in families
        for sample in family.samples
    }


# Prometheus ends a gauge's series as soon as a scrape lacks it, but only if its samples have no times.
@pytest.mark.parametrize("openmetrics", [False, True])
def test_cumulative_metrics_have_the_time_of_their_reading_and_gauges_have_none(openmetrics: bool) -> None:
    agent = Agent()
    agent.wall_s = 1_796_000_000.25
    agent.tick(one_of_each())
    kinds = parsed(agent.text(openmetrics=openmetrics), openmetrics=openmetrics).kinds
    of_samples = times(agent, openmetrics)
    for name, kind in kinds.items():
        suffix = "_bucket" if kind == "histogram" else "_total" if kind == "counter" and openmetrics else ""
        is_cumulative = kind in ("counter", "histogram", "unknown")
        if f"{name}{suffix}" in of_samples:
            assert of_samples[f"{name}{suffix}"] == (1_796_000_001.25 if is_cumulative else None), name
    assert of_samples["casstat_ticks_total"] == of_samples["process_cpu_seconds_total"] == 1_796_000_001.25
    assert of_samples["casstat_source_up"] is of_samples["cassandra_info"] is None


def test_the_time_of_a_reading_is_exact_if_the_agent_is_interrupted_between_its_two_clocks() -> None:
    agent = Agent()
    agent.wall_s = 1_796_000_000.25
    agent.interruptions_s = [0.018, 3.0]
    agent.tick({HINTS: 1})
    assert times(agent)["cassandra_hints_total"] == pytest.approx(1_796_000_001.25, abs=0.001)


def test_a_metric_that_is_read_seldom_keeps_the_time_of_its_reading() -> None:
    agent = Agent()
    agent.tick({HINTS: 1, ("cassandra_load_bytes",): 7})
    agent.tick({("cassandra_load_bytes",): 7})
    assert times(agent)["cassandra_hints_total"] == 1
    assert times(agent)["casstat_ticks_total"] == 2


@pytest.mark.parametrize("openmetrics", [False, True])
def test_series_of_a_metric_that_are_read_at_different_times_keep_their_own(openmetrics: bool) -> None:
    """The tables that are not read themselves, as one series, are read less often than the others."""
    agent = Agent()
    counter = ("cassandra_table_operations_total", "ks")
    histogram = ("cassandra_table_operation_duration_seconds", "ks")
    total = CATALOGUE[histogram[0]].total
    others: Values = {
        (*counter, "(others)", "Read"): 1000,
        (*histogram, "b", "Read"): (1,) * 128,
        (total, "ks", "b", "Read"): 5,
    }
    for number in range(3):
        read: Values = {(*counter, "a", "Read"): number, (*histogram, "a", "Read"): (number + 1,) * 128}
        agent.tick(read if number else {**read, **others})
    parse = openmetrics_families if openmetrics else text_families
    seconds: dict[tuple[str, str], set[float]] = {}
    for family in parse(agent.text(openmetrics=openmetrics)):
        for sample in family.samples:
            if "table" in sample.labels and sample.timestamp is not None:
                seconds.setdefault((family.name, sample.labels["table"]), set()).add(float(sample.timestamp))
    assert seconds == {
        (counter[0].removesuffix("_total"), "a"): {3},
        (counter[0].removesuffix("_total"), "(others)"): {1},
        (histogram[0], "a"): {3},
        (histogram[0], "b"): {1},
        (total.removesuffix("_total"), "b"): {1},
    }


def test_a_tick_that_arrives_while_the_page_is_rendered_is_not_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    agent.tick({HINTS: 1})
    grouped = Rendering._grouped

    def grouped_late(rendering: Any, current: CurrentValues) -> Any:
        monkeypatch.setattr(Rendering, "_grouped", grouped)
        agent.tick({HINTS: 2})
        return grouped(rendering, current)

    monkeypatch.setattr(Rendering, "_grouped", grouped_late)
    text = agent.text()
    assert (parsed(text).of("cassandra_hints_total", **NODE), "} 1 1000\n" in text) == (1, True)
    assert (agent.value("cassandra_hints_total"), times(agent)["cassandra_hints_total"]) == (2, 2.0)


def test_a_page_never_has_the_values_of_one_tick_and_the_totals_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, pages = Agent(), list[str]()
    agent.tick({HINTS: 1}, late_s=0.25)
    add = LatestValues.add
    asking = threading.Thread(target=lambda: pages.append(agent.text()))

    def add_and_ask(latest: LatestValues, snapshot: Snapshot, offset_s: float) -> None:
        add(latest, snapshot, offset_s)
        asking.start()
        # If the page can be rendered now, it is; if not, the request waits until the tick has been added.
        asking.join(0.2)

    monkeypatch.setattr(LatestValues, "add", add_and_ask)
    agent.tick({HINTS: 2}, late_s=0.5)
    asking.join()
    page = parsed(pages[0])
    assert (page.of("cassandra_hints_total", **NODE), page.of("casstat_tick_late_seconds", **NODE)) == (2, 0.5)


def test_a_histogram_has_the_time_of_its_sum_if_that_is_later() -> None:
    agent = Agent()
    durations = ("cassandra_client_request_duration_seconds", "Read")
    total = CATALOGUE[durations[0]].total
    agent.tick({durations: (1,) * 128, (total, "Read"): 10})
    agent.tick({(total, "Read"): 20})
    assert {times(agent)[f"{durations[0]}_{suffix}"] for suffix in ("bucket", "count", "sum")} == {2.0}


def test_samples_have_no_times_while_there_is_no_tick() -> None:
    agent = Agent()
    assert set(times(agent).values()) == {None}
    agent.tick({HINTS: 1})
    assert times(agent)["cassandra_hints_total"] == 1
    agent.now_s += 100
    assert set(times(agent).values()) == {None}


def test_times_never_decrease() -> None:
    agent = Agent()
    given = []
    for wall_s in (100.0, 100.0, -50.0, -50.0, 96.0, 97.0):
        agent.wall_s = wall_s
        agent.tick({HINTS: 1})
        given.append((times(agent)["cassandra_hints_total"], times(agent)["casstat_ticks_total"]))
    assert given == [(time_s, time_s) for time_s in (101.0, 102.0, None, None, None, 103.0)]

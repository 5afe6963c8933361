"""The nodetool source: the reports that it runs, and the values and facts that it reads from them."""

import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from collector.model.clock import SystemClock
from collector.model.metric import Values
from collector.model.snapshot import Scrape, SourceError
from collector.node.host.cassandra_processes import LocalNode
from collector.node.nodetool.nodetool_source import PACE, SHARE, NodetoolSource, report_requests
from collector.node.nodetool.reports.report import Report
from collector.node.nodetool.runner import Connection, Nodetool, NodetoolError
from collector.node.selection import Selection

KEYSPACE_COUNT, TABLE_COUNT = "cassandra_keyspace_operations_total", "cassandra_table_operations_total"
SUM = "cassandra_local_operations_total"
HOST_ID = "0f0e0d0c"


@dataclass
class Stub(ModuleType):
    """A report module that ignores its input and returns the report set by the test."""

    ARGUMENTS: tuple[str, ...]
    FILLS: frozenset[str] = frozenset()
    report: Report = field(default_factory=Report)
    by_names: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.ARGUMENTS[0])
        if self.by_names:
            self.arguments = lambda keyspace, table: (*self.ARGUMENTS, *filter(None, [keyspace, table]))

    def parse(self, _text: str) -> Report:
        return self.report


class FakeNodetool(Nodetool):
    """Returns text for every command; tests choose the commands that fail, or that wait until `gate` is set."""

    def __init__(self) -> None:
        super().__init__(Path("/opt/bin/nodetool"), Connection(), {})
        self.failing: dict[str, str] = {}
        self.gate = threading.Event()
        self.waiting: set[str] = set()
        self.ran: list[tuple[str, ...]] = []
        self.closed = False

    def run(self, arguments: Any, timeout_s: float) -> str:
        del timeout_s
        self.ran.append(tuple(arguments))
        if arguments[0] in self.waiting:
            self.gate.wait()
        if arguments[0] in self.failing or self.closed:
            raise NodetoolError(f"nodetool {arguments[0]}: {self.failing.get(arguments[0], 'ended')}")
        return "text"

    def close(self) -> None:
        self.closed = True
        self.gate.set()


class Process(LocalNode):
    """A process that is running until the test sets `ended`."""

    ended = False

    def is_running(self) -> bool:
        return not self.ended


def process(pid: int = 7) -> Process:
    return Process(pid, 1.0, directories=(Path("/data"),))


@pytest.fixture
def stubs() -> dict[str, Stub]:
    """Return stubs of reports by command."""
    stats: Values = {
        (KEYSPACE_COUNT, "ks", "Read"): 5,
        (KEYSPACE_COUNT, "more", "Read"): 6,
        (KEYSPACE_COUNT, "system", "Read"): 100,
    }
    reports = [
        Stub(("info",), frozenset({"load"}), Report({("load",): 7}, properties={"ID": HOST_ID, "Generation No": "99"})),
        Stub(("status",), frozenset({"up"}), Report(properties={HOST_ID: "10.0.0.1", "other": "10.0.0.2"})),
        Stub(("tablestats", "-F", "json"), frozenset({KEYSPACE_COUNT, TABLE_COUNT, SUM}), Report(stats), by_names=True),
        Stub(("tpstats",), frozenset({"pool"})),
    ]
    return {stub.ARGUMENTS[0]: stub for stub in reports}


def test_the_selected_metrics_determine_which_reports_are_run(stubs: dict[str, Stub]) -> None:
    def names(metrics: set[str] | None, *always: str) -> list[str]:
        return [
            request.name
            for request in report_requests(
                list(stubs.values()), Selection(None if metrics is None else frozenset(metrics)), always=always
            )
        ]

    assert len(stubs) == 4
    assert names(None)[0] == "nodetool tablestats"
    assert names({"load", SUM}) == ["nodetool tablestats", "nodetool info"]
    assert names({"nosuch"}) == []
    assert names({"pool"}, "status") == ["nodetool status", "nodetool tpstats"]


def test_a_selected_table_is_the_only_one_requested(stubs: dict[str, Stub]) -> None:
    (request,) = report_requests(list(stubs.values()), Selection(frozenset({TABLE_COUNT}), "ks", "t"))
    assert request.arguments == ("tablestats", "-F", "json", "ks", "t")
    assert not request.covers_node
    assert report_requests(list(stubs.values()), Selection(frozenset({TABLE_COUNT})))[0].covers_node


def source_of(stubs: dict[str, Stub], tool: FakeNodetool, local: LocalNode | None, *metrics: str) -> NodetoolSource:
    return NodetoolSource(tool, Selection(frozenset(metrics)), SystemClock(), lambda: local, list(stubs.values()))


def next_scrape(nodetool_source: NodetoolSource, number: int = 0) -> Scrape:
    """Run a report, and return its next scrape."""
    source = nodetool_source.sources[number]
    source.start().result()
    return source.read(0.0)


def test_facts_include_address_process_and_origin(stubs: dict[str, Stub]) -> None:
    with closing(source_of(stubs, FakeNodetool(), process(), SUM)) as nodetool_source:
        facts = nodetool_source.learn(60.0)
        assert (facts.address, facts.directories) == ("10.0.0.1", (Path("/data"),))
        assert (facts.pid, facts.is_local, facts.origin, facts.jvm) == (7, True, "7 1.0", "/opt/bin/nodetool")
        assert [source.name for source in nodetool_source.sources] == ["nodetool tablestats"]
        assert nodetool_source.provides(SUM)
        assert not nodetool_source.provides("pool")
        assert nodetool_source.sources[0].read(0.0).origin == facts.origin


@pytest.mark.parametrize(
    ("option", "is_known"), [("-XX:+UseG1GC", True), ("-XX:+UseZGC", False), ("-XX:+UseShenandoahGC", False)]
)
def test_collections_that_include_concurrent_cycles_are_absent(
    stubs: dict[str, Stub], option: str, is_known: bool
) -> None:
    total, number = ("cassandra_gcstats_total_seconds",), ("cassandra_gcstats_collections",)
    stubs["tpstats"].report = Report({total: 450, number: 7})
    node = Process(7, 1.0, command=("java", option, "CassandraDaemon"))
    with closing(source_of(stubs, FakeNodetool(), node, "pool")) as nodetool_source:
        values = next_scrape(nodetool_source).values
    assert values.get(number) == 7
    assert (total in values) is is_known


def test_without_a_visible_process_the_generation_is_the_origin(stubs: dict[str, Stub]) -> None:
    with closing(source_of(stubs, FakeNodetool(), None, SUM)) as nodetool_source:
        facts = nodetool_source.learn(60.0)
        assert (facts.pid, facts.is_local, facts.origin) == (None, True, "99")
        assert [source.name for source in nodetool_source.sources] == ["nodetool tablestats", "nodetool info"]


def test_reports_are_run_less_often_when_there_are_more_of_them(stubs: dict[str, Stub]) -> None:
    with closing(source_of(stubs, FakeNodetool(), process(), SUM, "load", "pool")) as nodetool_source:
        assert len(nodetool_source.sources) / SHARE > PACE
        assert {source._pace for source in nodetool_source.sources} == {len(nodetool_source.sources) / SHARE}


def test_only_the_first_of_several_failures_is_reported(stubs: dict[str, Stub]) -> None:
    tool = FakeNodetool()
    tool.failing = dict.fromkeys(("info", "status", "tablestats"), "Connection refused")
    with closing(source_of(stubs, tool, process(), SUM)) as nodetool_source:
        with pytest.raises(SourceError, match=r"^nodetool tablestats: Connection refused$"):
            nodetool_source.learn(60.0)
        tool.failing.clear()
        nodetool_source.sources[0].read(0.0)
        assert nodetool_source.learn(60.0).address == "10.0.0.1"


def test_a_timeout_is_reported(stubs: dict[str, Stub]) -> None:
    tool = FakeNodetool()
    tool.waiting = {"info", "status", "tablestats"}
    with (
        closing(source_of(stubs, tool, process(), SUM)) as nodetool_source,
        pytest.raises(SourceError, match=r"^no report within 0 s$"),
    ):
        nodetool_source.learn(0.01)


def test_missing_facts_are_requested_again(stubs: dict[str, Stub]) -> None:
    tool = FakeNodetool()
    tool.failing["status"] = "not yet"
    with closing(source_of(stubs, tool, process(), SUM)) as nodetool_source:
        assert nodetool_source.learn(60.0).address == ""
        tool.failing.clear()
        while not nodetool_source.learn(60.0).address:
            pass
        runs = len(tool.ran)
        nodetool_source.learn(60.0)
        assert len(tool.ran) == runs


def test_the_peers_are_the_nodes_in_the_last_status_report(stubs: dict[str, Stub]) -> None:
    with closing(source_of(stubs, FakeNodetool(), process(), "up")) as nodetool_source:
        assert nodetool_source.learn(60.0).peers == ("10.0.0.1", "10.0.0.2")
        next_scrape(nodetool_source)
        stubs["status"].report = Report(properties={HOST_ID: "10.0.0.1", "new": "10.0.0.3"})
        next_scrape(nodetool_source)
        assert nodetool_source.peers(0.0) == tuple(sorted(nodetool_source.members)) == ("10.0.0.1", "10.0.0.3")
        # A malformed report does not change the peers.
        stubs["status"].report = Report(problems=("a line",))
        next_scrape(nodetool_source)
        assert nodetool_source.learn(60.0).peers == ("10.0.0.1", "10.0.0.3")


def test_operations_on_all_user_keyspaces_are_added_up(stubs: dict[str, Stub]) -> None:
    with closing(source_of(stubs, FakeNodetool(), process(), SUM)) as nodetool_source:
        scrape = next_scrape(nodetool_source)
    assert scrape.values[SUM, "Read"] == 11
    assert scrape.values[KEYSPACE_COUNT, "ks", "Read"] == 5


def test_a_partly_parsed_report_is_not_added_up(stubs: dict[str, Stub]) -> None:
    stubs["tablestats"].report = Report({(KEYSPACE_COUNT, "ks", "Read"): 5}, ("a line", "another", "a third"))
    with closing(source_of(stubs, FakeNodetool(), process(), SUM)) as nodetool_source:
        scrape = next_scrape(nodetool_source)
    assert (SUM, "Read") not in scrape.values
    assert scrape.values[KEYSPACE_COUNT, "ks", "Read"] == 5
    assert scrape.problem == "a line (and 2 more)"


def test_a_selected_keyspace_is_not_added_up(stubs: dict[str, Stub]) -> None:
    selection = Selection(frozenset({KEYSPACE_COUNT}), "ks")
    with closing(
        NodetoolSource(FakeNodetool(), selection, SystemClock(), process, list(stubs.values()))
    ) as nodetool_source:
        assert (SUM, "Read") not in next_scrape(nodetool_source).values


def test_a_report_that_runs_during_a_restart_is_discarded(stubs: dict[str, Stub]) -> None:
    tool, is_running = FakeNodetool(), [process(7)]
    tool.waiting = {"tablestats"}
    with closing(
        NodetoolSource(tool, Selection(frozenset({SUM})), SystemClock(), lambda: is_running[-1], list(stubs.values()))
    ) as nodetool_source:
        source = nodetool_source.sources[0]
        running = source.start()
        while ("tablestats", "-F", "json") not in tool.ran:
            assert not running.done()
        is_running[0].ended = True
        is_running.append(process(8))
        tool.gate.set()
        running.result()
        scrape = source.read(0.0)
        assert scrape.values == {}
        assert "restarted while the report was running" in scrape.problem
        scrape = next_scrape(nodetool_source)
        assert (scrape.origin, scrape.problem) == ("8 1.0", "")


def test_a_restarted_process_is_found_again(stubs: dict[str, Stub]) -> None:
    here = [process(7)]

    def find() -> LocalNode | None:
        return None if here[0].ended else here[0]

    with closing(
        NodetoolSource(FakeNodetool(), Selection(frozenset({SUM})), SystemClock(), find, list(stubs.values()))
    ) as nodetool_source:
        assert nodetool_source.learn(60.0).origin == "7 1.0"
        here[0].ended = True
        assert nodetool_source.learn(60.0).pid is None
        here[0] = process(8)
        facts = nodetool_source.learn(60.0)
        assert (facts.pid, facts.origin) == (8, "8 1.0")


def test_closing_ends_running_reports_and_drops_waiting_ones(stubs: dict[str, Stub]) -> None:
    tool = FakeNodetool()
    tool.waiting = {"info", "status", "tablestats", "tpstats"}
    nodetool_source = source_of(stubs, tool, None, SUM, "pool")
    for source in nodetool_source.sources:
        source.start()
    nodetool_source.close()
    assert tool.closed
    assert len(tool.ran) <= 2

"""A node through nodetool: what is asked for, and what is known of the node by it."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from collector.host.cassandra_processes import LocalNode
from collector.model.clock import SystemClock
from collector.model.metric import Values
from collector.model.snapshot import Scrape, SourceError
from collector.nodetool.nodetool_source import PACE, SHARE, NodetoolSource, report_requests
from collector.nodetool.reports.report import Report
from collector.nodetool.runner import Connection, Nodetool, NodetoolError
from collector.sampling.selection import Selection

KEYSPACE_COUNT, TABLE_COUNT = "cassandra_keyspace_operations_total", "cassandra_table_operations_total"
SUM = "cassandra_local_operations_total"
HOST_ID = "0f0e0d0c"


@dataclass
class Stub(ModuleType):
    """A report that says what a test wants."""

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


class Tool(Nodetool):
    """Says something to everything, but for what is to fail or to wait."""

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
    """A process that ends when a test says so."""

    ended = False

    def is_running(self) -> bool:
        return not self.ended


def process(pid: int = 7) -> Process:
    return Process(pid, 1.0, directories=(Path("/data"),))


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Stub]]:
    """Let these be the reports there are."""
    stats: Values = {
        (KEYSPACE_COUNT, "ks", "Read"): 5,
        (KEYSPACE_COUNT, "more", "Read"): 6,
        (KEYSPACE_COUNT, "system", "Read"): 100,
    }
    found = [
        Stub(("info",), frozenset({"load"}), Report({("load",): 7}, properties={"ID": HOST_ID, "Generation No": "99"})),
        Stub(("status",), frozenset({"up"}), Report(properties={HOST_ID: "10.0.0.1", "other": "10.0.0.2"})),
        Stub(("tablestats", "-F", "json"), frozenset({KEYSPACE_COUNT, TABLE_COUNT, SUM}), Report(stats), by_names=True),
        Stub(("tpstats",), frozenset({"pool"})),
    ]
    with monkeypatch.context() as patch:
        patch.setattr("collector.nodetool.nodetool_source.REPORTS", tuple(found))
        yield {stub.ARGUMENTS[0]: stub for stub in found}


def test_asked_for_is_what_fills_what_is_wanted_the_operations_first(stubs: dict[str, Stub]) -> None:
    def names(metrics: set[str] | None, *always: str) -> list[str]:
        return [
            each.name
            for each in report_requests(Selection(None if metrics is None else frozenset(metrics)), always=always)
        ]

    assert len(stubs) == 4
    assert names(None)[0] == "nodetool tablestats"
    assert names({"load", SUM}) == ["nodetool tablestats", "nodetool info"]
    assert names({"nosuch"}) == []
    assert names({"pool"}, "status") == ["nodetool status", "nodetool tpstats"]


@pytest.mark.usefixtures("stubs")
def test_a_chosen_table_is_all_that_is_asked_for() -> None:
    (asked,) = report_requests(Selection(frozenset({TABLE_COUNT}), "ks", "t"))
    assert asked.arguments == ("tablestats", "-F", "json", "ks", "t")
    assert not asked.covers_node
    assert report_requests(Selection(frozenset({TABLE_COUNT})))[0].covers_node


def node(tool: Tool, local: LocalNode | None, *metrics: str) -> NodetoolSource:
    return NodetoolSource(tool, Selection(frozenset(metrics)), SystemClock(), lambda: local)


def settled(watched: NodetoolSource, number: int = 0) -> Scrape:
    """Return what a source says next."""
    source = watched.sources[number]
    source.start().result()
    return source.read(0.0)


@pytest.mark.usefixtures("stubs")
def test_a_node_tells_who_and_where_it_is() -> None:
    with closing(node(Tool(), process(), SUM)) as watched:
        facts = watched.learn(60.0)
        assert (facts.address, facts.directories) == ("10.0.0.1", (Path("/data"),))
        assert (facts.pid, facts.here, facts.origin, facts.jvm) == (7, True, "7 1.0", "/opt/bin/nodetool")
        assert [source.name for source in watched.sources] == ["nodetool tablestats"]
        assert watched.provides(SUM)
        assert not watched.provides("pool")
        assert watched.sources[0].read(0.0).origin == facts.origin


@pytest.mark.usefixtures("stubs")
def test_where_its_process_is_not_seen_its_generation_is_what_its_counters_count_from() -> None:
    with closing(node(Tool(), None, SUM)) as watched:
        facts = watched.learn(60.0)
        assert (facts.pid, facts.here, facts.origin) == (None, True, "99")
        assert [source.name for source in watched.sources] == ["nodetool tablestats", "nodetool info"]


@pytest.mark.usefixtures("stubs")
def test_the_more_reports_the_less_often_each() -> None:
    with closing(node(Tool(), process(), SUM, "load", "pool")) as watched:
        assert len(watched.sources) / SHARE > PACE
        assert {source._pace for source in watched.sources} == {len(watched.sources) / SHARE}


@pytest.mark.usefixtures("stubs")
def test_of_a_node_that_does_not_answer_the_first_reason_is_told() -> None:
    tool = Tool()
    tool.failing = dict.fromkeys(("info", "status", "tablestats"), "Connection refused")
    with closing(node(tool, process(), SUM)) as watched:
        with pytest.raises(SourceError, match=r"^nodetool tablestats: Connection refused$"):
            watched.learn(60.0)
        tool.failing.clear()
        watched.sources[0].read(0.0)
        assert watched.learn(60.0).address == "10.0.0.1"


@pytest.mark.usefixtures("stubs")
def test_a_node_that_says_nothing_in_time_is_told() -> None:
    tool = Tool()
    tool.waiting = {"info", "status", "tablestats"}
    with closing(node(tool, process(), SUM)) as watched, pytest.raises(SourceError, match=r"^no answer within 0 s$"):
        watched.learn(0.01)


@pytest.mark.usefixtures("stubs")
def test_what_a_node_did_not_say_of_itself_at_first_it_is_asked_again() -> None:
    tool = Tool()
    tool.failing["status"] = "not yet"
    with closing(node(tool, process(), SUM)) as watched:
        assert watched.learn(60.0).address == ""
        tool.failing.clear()
        while not watched.learn(60.0).address:
            pass
        asked = len(tool.ran)
        watched.learn(60.0)
        assert len(tool.ran) == asked


def test_the_peers_are_the_nodes_of_the_last_status(stubs: dict[str, Stub]) -> None:
    with closing(node(Tool(), process(), "up")) as watched:
        assert watched.learn(60.0).peers == ("10.0.0.1", "10.0.0.2")
        settled(watched)
        stubs["status"].report = Report(properties={HOST_ID: "10.0.0.1", "new": "10.0.0.3"})
        settled(watched)
        assert watched.peers(0.0) == tuple(sorted(watched.members)) == ("10.0.0.1", "10.0.0.3")
        # One that is not understood changes nothing.
        stubs["status"].report = Report(problems=("a line",))
        settled(watched)
        assert watched.learn(60.0).peers == ("10.0.0.1", "10.0.0.3")


@pytest.mark.usefixtures("stubs")
def test_operations_of_all_keyspaces_but_cassandras_own_are_added_up() -> None:
    with closing(node(Tool(), process(), SUM)) as watched:
        scrape = settled(watched)
    assert scrape.values[SUM, "Read"] == 11
    assert scrape.values[KEYSPACE_COUNT, "ks", "Read"] == 5


def test_where_not_all_was_understood_nothing_is_added_up(stubs: dict[str, Stub]) -> None:
    stubs["tablestats"].report = Report({(KEYSPACE_COUNT, "ks", "Read"): 5}, ("a line", "another", "a third"))
    with closing(node(Tool(), process(), SUM)) as watched:
        scrape = settled(watched)
    assert (SUM, "Read") not in scrape.values
    assert scrape.values[KEYSPACE_COUNT, "ks", "Read"] == 5
    assert scrape.problem == "a line (and 2 more)"


@pytest.mark.usefixtures("stubs")
def test_of_a_chosen_keyspace_nothing_is_added_up() -> None:
    selection = Selection(frozenset({KEYSPACE_COUNT}), "ks")
    with closing(NodetoolSource(Tool(), selection, SystemClock(), process)) as watched:
        assert (SUM, "Read") not in settled(watched).values


@pytest.mark.usefixtures("stubs")
def test_what_was_said_while_the_node_was_restarted_is_not_believed() -> None:
    tool, is_running = Tool(), [process(7)]
    tool.waiting = {"tablestats"}
    with closing(NodetoolSource(tool, Selection(frozenset({SUM})), SystemClock(), lambda: is_running[-1])) as watched:
        source = watched.sources[0]
        running = source.start()
        while ("tablestats", "-F", "json") not in tool.ran:
            assert not running.done()
        is_running[0].ended = True
        is_running.append(process(8))
        tool.gate.set()
        running.result()
        scrape = source.read(0.0)
        assert scrape.values == {}
        assert "restarted during the report" in scrape.problem
        scrape = settled(watched)
        assert (scrape.origin, scrape.problem) == ("8 1.0", "")


@pytest.mark.usefixtures("stubs")
def test_a_process_that_comes_back_after_a_while_is_found_again() -> None:
    here = [process(7)]

    def find() -> LocalNode | None:
        return None if here[0].ended else here[0]

    with closing(NodetoolSource(Tool(), Selection(frozenset({SUM})), SystemClock(), find)) as watched:
        assert watched.learn(60.0).origin == "7 1.0"
        here[0].ended = True
        assert watched.learn(60.0).pid is None
        here[0] = process(8)
        facts = watched.learn(60.0)
        assert (facts.pid, facts.origin) == (8, "8 1.0")


@pytest.mark.usefixtures("stubs")
def test_closing_ends_what_runs_and_waits_for_nothing_else() -> None:
    tool = Tool()
    tool.waiting = {"info", "status", "tablestats", "tpstats"}
    watched = node(tool, None, SUM, "pool")
    for source in watched.sources:
        source.start()
    watched.close()
    assert tool.closed
    assert len(tool.ran) <= 2

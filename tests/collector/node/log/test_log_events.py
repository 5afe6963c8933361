"""Events from real logs of every Cassandra version, and from arbitrary messages."""

import random

from hypothesis import given
from hypothesis import strategies as st

from collector.node.log.log_events import ROWS, collection_s, event_of, table_of
from collector.node.log.logback import DEFAULT_PATTERN, parse
from tests.collector.captures import FOLDER
from tests.every import every

VERSIONS = ("3.11.19", "4.0.17", "4.1.9", "5.0.8")
FILES = ("system", "debug")
PATTERN = parse(DEFAULT_PATTERN)
DATA = "/var/lib/cassandra/data"
TABLE_ID = "5fa69300e5a611f1b473c366697e480a"
COMPACTED = (
    "Compacted (5f5369f0-e5a6-11f1-b473-c366697e480a) 1,204 sstables to [{paths}] to level=0.  {sizes} (~87% of "
    "original) in {duration}ms.  Read Throughput = 8.328KiB/s, Write Throughput = 6.649KiB/s, Row Throughput = ~2/s."
)


def lines(version: str, name: str) -> list[str]:
    return (FOLDER / version / f"{name}.log").read_text().splitlines()


def messages() -> list[str]:
    """Return every message in the captured debug logs."""
    parsed = (PATTERN.line(line) for version in VERSIONS for line in lines(version, "debug"))
    return [line.message for line in parsed if line]


MESSAGES = messages()


def events_of(version: str, name: str) -> list[str]:
    events = []
    for line in filter(None, map(PATTERN.line, lines(version, name))):
        if event := event_of(line.message):
            events.append(f"{line.date} {event[0]} {event[1]}")
    return events


def text(message: str) -> str:
    event = event_of(message)
    assert event is not None
    return event[1]


@every("version", VERSIONS)
@every("name", FILES)
def test_real_logs_give_the_expected_events(version: str, name: str) -> None:
    assert events_of(version, name) == (FOLDER / version / f"{name}.events.txt").read_text().splitlines()


@every("version", VERSIONS)
def test_the_captures_contain_every_kind_except_errors(version: str) -> None:
    seen = {
        event[0]
        for line in filter(None, map(PATTERN.line, lines(version, "debug")))
        if (event := event_of(line.message))
    }
    assert seen == {row.kind for row in ROWS} - {"error"}


def test_before_4_0_flushes_and_compactions_are_logged_only_in_debug_log() -> None:
    def kinds(version: str, name: str) -> set[str]:
        return {line.split()[2] for line in events_of(version, name)}

    assert kinds("3.11.19", "debug") - kinds("3.11.19", "system") == {"flush", "compaction"}
    for version in VERSIONS[1:]:
        assert events_of(version, "debug") == events_of(version, "system")


@every(
    ("path", "table"),
    [
        (f"{DATA}/ks1/t000-{TABLE_ID}/nb-1-big-Data.db", "ks1.t000"),
        (f"{DATA}/ks1/t000-{TABLE_ID}/.by_v/nb-1-big-Data.db", "ks1.t000.by_v"),
        (f"{DATA}/ks1/t000-{TABLE_ID}/da-3fw2_0tj8_46w3k2cpidnirvjy7k-bti", "ks1.t000"),
        ("/data 2/ks1/old/ks1-old-ka-1-Data.db", "ks1.old"),
        (f"{DATA}/system/local-{TABLE_ID}/nb-1-big-Data.db", None),
        (f"{DATA}/system_auth/roles-{TABLE_ID}/nb-1-big-Data.db", None),
        (f"{DATA}/systematic/t-{TABLE_ID}/nb-1-big-Data.db", "systematic.t"),
        ("nb-1-big-Data.db", "an unnamed table"),
    ],
)
def test_tables_are_identified_by_their_directory(path: str, table: str | None) -> None:
    assert table_of(path) == table


def test_the_event_of_a_collection_has_its_duration() -> None:
    event = event_of("G1 Old Generation GC in 1312ms.  G1 Old Gen: 1 -> 0; ")
    assert event is not None
    assert collection_s(*event) == 1.312


@every("collector", ["ZGC", "ZGC Cycles", "ZGC Minor Cycles", "ZGC Major Cycles", "Shenandoah Cycles"])
def test_a_concurrent_cycle_is_no_event_and_no_pause(collector: str) -> None:
    assert event_of(f"{collector} GC in 864ms.  ZHeap: 1 -> 2; ") is None
    # Recordings of earlier versions have such events.
    assert collection_s("gc", f"GC {collector} 864 ms") is None


def test_other_events_have_no_duration_of_a_collection() -> None:
    assert collection_s("repair", "finished in 12 ms") is None
    assert all(collection_s("gc", f"GC G1 Young Generation {'9' * digits} ms") is None for digits in (400, 5000))


def compacted(sizes: str, duration: str, paths: int = 1) -> str:
    names = "".join(f"{DATA}/ks1/t000-{TABLE_ID}/nb-{number}-big," for number in range(paths))
    return text(COMPACTED.format(paths=names, sizes=sizes, duration=duration))


def test_a_compaction_has_its_sizes_and_duration() -> None:
    assert (
        compacted("68.900MiB to 60.123MiB", "12,300")
        == "compacted ks1.t000 1204 -> 1 sstables, 68.9 -> 60.1 MiB in 12.3 s"
    )
    assert compacted("1.500GiB to 900.000MiB", "999", 640).endswith("-> 640 sstables, 1.5 GiB -> 900.0 MiB in 999 ms")
    assert compacted("858B to 0.215KiB", "1").endswith("858 -> 220 B in 1 ms")
    assert compacted("2048.000TiB to 1bytes", "1").endswith("2048.0 TiB -> 1 B in 1 ms")
    # Everything in these SSTables had expired.
    assert compacted("130B to 0B", "35", 0) == "compacted an unnamed table 1204 -> 0 sstables, 130 -> 0 B in 35 ms"


def test_numbers_formatted_for_other_locales_are_read() -> None:
    assert compacted("68,900MiB to 60,123MiB", "12.300").endswith("68.9 -> 60.1 MiB in 12.3 s")
    assert compacted("68,900MiB to 60,123MiB", "1\u202f012\u202f300").endswith("in 1012.3 s")
    assert compacted("68.900MiB to 60.123MiB", "12\u2019300").endswith("in 12.3 s")


@every(
    ("message", "event"),
    [
        ("G1 Young Generation GC in 312ms.  G1 Eden Space: 1 -> 0; ", ("gc", "GC G1 Young Generation 312 ms")),
        ("ConcurrentMarkSweep GC in 1312ms.  CMS Old Gen: 1 -> 0; ", ("gc", "GC ConcurrentMarkSweep 1312 ms")),
        ("ZGC Pauses GC in 1ms. ", ("gc", "GC ZGC Pauses 1 ms")),
        ("ZGC Major Pauses GC in 1ms. ", ("gc", "GC ZGC Major Pauses 1 ms")),
        ("G1 Concurrent GC GC in 12ms. ", ("gc", "GC G1 Concurrent GC 12 ms")),
        ("InetAddress node2/10.0.0.2:7000 is now DOWN", ("node_down", "10.0.0.2 is DOWN")),
        ("InetAddress /10.0.0.2:7002 is now DOWN", ("node_down", "10.0.0.2:7002 is DOWN")),
        ("InetAddress /[2001:db8::2]:7001 is now UP", ("node_up", "2001:db8::2 is UP")),
        ("InetAddress /2001:db8:0:0:0:0:0:2 is now UP", ("node_up", "2001:db8:0:0:0:0:0:2 is UP")),
        (
            "READ_REQ messages were dropped in last 5000 ms: 12 internal and 3 cross node. Mean internal …",
            ("dropped", "dropped 15 READ_REQ messages in 5 s (12 internal, 3 cross-node)"),
        ),
        (
            "[repair #e2241270-e5a7-11f1-add6-bf1cb331c256] session completed with the following error",
            ("repair", "repair session e2241270 failed"),
        ),
        ("Repair command #7 failed with error boom", ("repair", "repair #7 failed")),
        ("[Stream #e2241270-e5a7-11f1-add6-bf1cb331c256] Stream failed: ", ("stream", "stream e2241270 failed")),
        (
            "Exception in thread Thread[CompactionExecutor:2,5,main]",
            ("error", "exception in thread Thread[CompactionExecutor:2,5,main]"),
        ),
        ("Exception in thread Thread[\x1b[31m\r\x07,5,main]", ("error", "exception in thread Thread[?[31m ?,5,main]")),
    ],
)
def test_messages_missing_from_the_captures_give_events(message: str, event: tuple[str, str]) -> None:
    assert event_of(message) == event


@every(
    "message",
    [
        "",
        "Startup complete",
        "a user says: InetAddress /10.0.0.2 is now DOWN",
        f"Completed flushing {DATA}/system/local-{TABLE_ID}/nb-1-big-Data.db (99B) for commitlog position x",
        f"Completed flushing {DATA}/ks1/t-{TABLE_ID}/nb-1-big-Data.db; nothing needed to be retained.  Commitlog …",
        f"Completed flushing {DATA}/ks1/t-{TABLE_ID}/nb-1-big-Data.db (9{'9' * 5000}B) for commitlog position x",
        f"G1 GC in {'9' * 5000}ms.",
        "InetAddress /10.0.0.2 is now",
    ],
)
def test_unrelated_messages_give_no_event(message: str) -> None:
    assert event_of(message) is None


def check_event(message: str) -> None:
    """Assert that a message gives either no event or a valid one."""
    if event := event_of(message):
        kind, text = event
        assert kind in {row.kind for row in ROWS}
        assert text.isprintable()
        assert 0 < len(text) <= 200


@given(st.sampled_from(MESSAGES), st.integers(0, 10_000), st.text(max_size=5), st.integers(0, 3))
def test_a_changed_message_gives_no_event_or_a_valid_one(message: str, index: int, inserted: str, removed: int) -> None:
    index %= len(message) + 1
    check_event(message[:index] + inserted + message[index + removed :])


@given(st.randoms(use_true_random=False), st.sampled_from(MESSAGES), st.sampled_from(MESSAGES))
def test_shuffled_messages_give_no_event_or_a_valid_one(chance: random.Random, first: str, second: str) -> None:
    words = first.split() + second.split()
    chance.shuffle(words)
    check_event(" ".join(words))


def test_very_long_messages_give_no_event_or_a_valid_one() -> None:
    for row in ROWS:
        check_event(row.message.split("(")[0].replace("\\", "") + "a (1, 2MiB [, " * 20_000)
    for message in MESSAGES:
        check_event(message + " 1" * 100_000)

"""Events in Cassandra's log. Each row of ROWS describes one kind of message; the first row that matches is used.

The messages are those of Cassandra 3.11.19, 4.0.17, 4.1.9 and 5.0.8, as logged by real nodes or found in Cassandra's
jars; `docs/log.md` lists which log file contains which message.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from collector.node.metrics.jvm import pauses
from collector.node.metrics.tables import is_system_keyspace
from collector.printable import count_text, one_line

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# Default internode ports, which event texts omit.
STORAGE_PORTS = ("7000", "7001")
UNNAMED = "an unnamed table"

Match = re.Match[str]

# The lengths are bounded, because the matches are converted to numbers. The decimal mark (12.345 or 12,345) and the
# thousands separator (almost any character) depend on the JVM's locale.
_SIZE = r"\d{1,18}(?:[.,]\d{1,3})?(?:bytes| bytes|[KMGT]iB|B)"
_COUNT = r"\d[\d.,'\u2019\s]{0,30}"
_PARTS = re.compile(r"(?P<amount>[\d.,]{1,30})(?P<unit>\D+)")
_ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
_PEER = re.compile(rf"(?:[^/]*/)?(?P<address>\[.*\]|[^/:]+):(?:{'|'.join(STORAGE_PORTS)})")
_COLLECTION = re.compile(r"GC (?P<collector>.+) (?P<ms>\d{1,18}) ms")
_TABLE = re.compile(r"/(?P<keyspace>[^/]+)/(?P<table>[^/]+?)(?:-[0-9a-f]{32})?(?:/\.(?P<index>[^/]+))?/[^/]+$")


@dataclass(frozen=True)
class Row:
    """A kind of message that is reported as an event.

    message    regular expression that matches the beginning of the message.
    describe   returns the event's text, or None if the event is skipped: it concerns a system keyspace, or it is a
               concurrent cycle of a garbage collector, which is no pause.
    """

    kind: str
    message: str
    describe: Callable[[Match], str | None]


def event_of(message: str) -> tuple[str, str] | None:
    """Return the kind and text of the event in a log message, or None if it is not an event.

    The text is one printable line of at most 200 characters.
    """
    for row, expression in _COMPILED:
        if match := expression.match(message):
            text = row.describe(match)
            return (row.kind, one_line(text)) if text else None
    return None


def collection_s(kind: str, text: str) -> float | None:
    """Return the duration of the garbage collection pause that an event reports, in seconds; None for other events.

    Recordings of earlier versions also have events of concurrent cycles.
    """
    match = _COLLECTION.fullmatch(text) if kind == "gc" else None
    return int(match["ms"]) / 1000 if match and pauses(match["collector"]) else None


def table_of(path: str) -> str | None:
    """Return `keyspace.table` (plus `.index` for an index) for an SSTable's path; None for a system keyspace.

    Returns UNNAMED if the path is not recognised.
    """
    match = _TABLE.search(path)
    if match is None:
        return UNNAMED
    if is_system_keyspace(match["keyspace"]):
        return None
    return ".".join(filter(None, match.group("keyspace", "table", "index")))


def _flushed(match: Match) -> str | None:
    table = table_of(match["path"])
    return table and f"flushed {table} {_size(match['size'])}"


def _compacted(match: Match) -> str | None:
    # If all data has expired, the compaction writes no SSTable, so there is no path that reveals the table.
    paths = match["paths"].rstrip(",").split(",") if match["paths"] else []
    table = table_of(paths[0]) if paths else UNNAMED
    sstables, milliseconds = _integer(match["sstables"]), _integer(match["ms"])
    took = f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
    sizes = _from_to(_size(match["before"]), _size(match["after"]))
    return table and f"compacted {table} {sstables} -> {len(paths)} sstables, {sizes} in {took}"


def _dropped(match: Match) -> str:
    internal, cross, period_s = int(match["internal"]), int(match["cross"]), int(match["ms"]) / 1000
    messages = count_text(internal + cross, f"{match['verb']} message")
    return f"dropped {messages} in {period_s:g} s ({internal} internal, {cross} cross-node)"


def _repair_started(match: Match) -> str:
    mode = {"true": " (incremental)", "false": " (full)"}.get(match["incremental"] or "", "")
    return f"repair #{match['number']} of {match['keyspace']} started{mode}"


def _streams(match: Match) -> str:
    received, sent = _files(match["in_files"], match["in_size"]), _files(match["out_files"], match["out_size"])
    return f"stream {match['id'][:8]} receives {received}, sends {sent}"


def _files(number: str, size: str) -> str:
    return f"{count_text(int(number), 'file')} ({_size(size)})" if int(number) else "nothing"


def _node(match: Match) -> str:
    """Return the address in `name/address:port`, without the port if it is a default one."""
    peer = _PEER.fullmatch(match["node"])
    return peer["address"].strip("[]") if peer else match["node"].rpartition("/")[2]


def _integer(text: str) -> int:
    """Convert text to an integer, ignoring thousands separators."""
    return int(re.sub(r"\D", "", text))


def _size(text: str) -> str:
    """Format a size such as `12.345MiB` with one decimal (none for bytes), in the largest unit that gives 1 or more."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return text
    amount = float(match["amount"].replace(",", "."))
    amount *= 1024 ** "BKMGT".index(match["unit"].strip()[0].upper())
    exponent = 0
    while amount >= 1024 and exponent < len(UNITS) - 1:
        amount, exponent = amount / 1024, exponent + 1
    return f"{amount:.1f} {UNITS[exponent]}" if exponent else f"{amount:.0f} B"


def _from_to(before: str, after: str) -> str:
    """Return the text for a change in size; the unit is given only once if both sizes have the same unit."""
    number, _, unit = before.partition(" ")
    return f"{number if after.endswith(f' {unit}') else before} -> {after}"


ROWS = (
    Row("flush", rf"Completed flushing (?P<path>\S.*?) \((?P<size>{_SIZE})\) for commitlog", _flushed),
    Row(
        "compaction",
        rf"Compacted \([^)]*\) (?P<sstables>{_COUNT}) sstables to \[(?P<paths>[^\]]*)\] to level=\d+\.\s+"
        rf"(?P<before>{_SIZE}) to (?P<after>{_SIZE}) \([^)]*\) in (?P<ms>{_COUNT})ms",
        _compacted,
    ),
    Row(
        "repair",
        r"Starting repair command #(?P<number>\d{1,18}) \([^)]*\), repairing keyspace (?P<keyspace>\w+) "
        r"with repair options \((?:.*?\bincremental: (?P<incremental>true|false))?",
        _repair_started,
    ),
    Row(
        "repair",
        rf"(?:\[repair #{_ID}\]\s*)?Repair command #(?P<number>\d{{1,18}}) "
        r"(?P<end>finished in \d[\w .]*|finished with error|failed)",
        lambda match: f"repair #{match['number']} {match['end']}",
    ),
    Row(
        "repair",
        rf"\[repair #(?P<id>{_ID})\] (?:parentSessionId = {_ID}: )?new session: will sync ",
        lambda match: f"repair session {match['id'][:8]} started",
    ),
    Row(
        "repair",
        rf"\[repair #(?P<id>{_ID})\] (?i:session completed) (?P<end>successfully|with the following error)",
        lambda match: f"repair session {match['id'][:8]} {'finished' if match['end'] == 'successfully' else 'failed'}",
    ),
    Row(
        "gc",
        r"(?P<collector>\w[\w .:-]{0,60}?) GC in (?P<ms>\d{1,18})ms\.",
        lambda match: f"GC {match['collector']} {match['ms']} ms" if pauses(match["collector"]) else None,
    ),
    Row(
        "dropped",
        r"(?P<verb>[A-Z_]+) messages were dropped in last (?P<ms>\d{1,18}) ms: "
        r"(?P<internal>\d{1,18}) internal and (?P<cross>\d{1,18}) cross node",
        _dropped,
    ),
    Row("node_up", r"InetAddress (?P<node>\S+) is now UP", lambda match: f"{_node(match)} is UP"),
    Row("node_down", r"InetAddress (?P<node>\S+) is now DOWN", lambda match: f"{_node(match)} is DOWN"),
    Row("node_up", r"Node (?P<node>\S+) has restarted, now UP", lambda match: f"{_node(match)} has restarted"),
    Row("node_joined", r"Node (?P<node>\S+) is now part of the cluster", lambda match: f"{_node(match)} joined"),
    Row("node_joined", r"JOINING: Starting to bootstrap", lambda _: "this node is joining: bootstrap has started"),
    Row("node_left", r"Removing tokens \[[^\]]*\] for (?P<node>\S+)", lambda match: f"{_node(match)} left"),
    Row("node_left", r"DECOMMISSIONED\b", lambda _: "this node has been decommissioned"),
    Row(
        "stream",
        rf"\[Stream #(?P<id>{_ID})(?:,? ID#\d+)?\] Prepare completed\. "
        rf"Receiving (?P<in_files>\d{{1,18}}) files\((?P<in_size>{_SIZE})\), "
        rf"sending (?P<out_files>\d{{1,18}}) files\((?P<out_size>{_SIZE})\)",
        _streams,
    ),
    Row(
        "stream",
        rf"\[Stream #(?P<id>{_ID})\] (?P<end>All sessions completed|Stream failed|Stream aborted)",
        lambda match: f"stream {match['id'][:8]} {match['end'].split()[-1]}",
    ),
    Row(
        "hints",
        rf"Finished hinted handoff of file \S+ to endpoint (?P<node>\S+): {_ID}(?P<part>, partially)?",
        lambda match: f"hints {'partly ' if match['part'] else ''}delivered to {_node(match)}",
    ),
    Row("start", r"Starting listening for CQL clients on ", lambda _: "this node is accepting clients"),
    Row("stop", r"DRAINED\b", lambda _: "this node has been drained"),
    Row("stop", r"Announcing shutdown\b", lambda _: "this node is shutting down"),
    Row("error", r"Exception in thread (?P<thread>.+)", lambda match: f"exception in thread {match['thread']}"),
)

_COMPILED = tuple((row, re.compile(row.message)) for row in ROWS)

KINDS = frozenset(row.kind for row in ROWS)
"""The kinds of events in a log."""

"""What Cassandra's log says happened: one row per kind of message, tried in their order.

Found on real nodes of 3.11.19, 4.0.17, 4.1.9 and 5.0.8, and in the texts of their jars; `docs/log.md` says which
message stands in which file.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from collector.printable import one_line

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# What nodes speak to each other on by default is not worth repeating.
STORAGE_PORTS = ("7000", "7001")
UNNAMED = "a table that is not named"

Found = re.Match[str]

# Bounded, for they become numbers. A JVM may write them as its language does: 12.345 or 12,345, thousands apart by
# almost anything.
_SIZE = r"\d{1,18}(?:[.,]\d{1,3})?(?:bytes| bytes|[KMGT]iB|B)"
_COUNT = r"\d[\d.,'\u2019\s]{0,30}"
_PARTS = re.compile(r"(?P<amount>[\d.,]{1,30})(?P<unit>\D+)")
_ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
_PEER = re.compile(rf"(?:[^/]*/)?(?P<address>\[.*\]|[^/:]+):(?:{'|'.join(STORAGE_PORTS)})")
_TABLE = re.compile(r"/(?P<keyspace>[^/]+)/(?P<table>[^/]+?)(?:-[0-9a-f]{32})?(?:/\.(?P<index>[^/]+))?/[^/]+$")


@dataclass(frozen=True)
class Row:
    """A message that is an event.

    message   a regular expression that fits the beginning of the message.
    words     what to say of it, short and for people; None when it is not worth saying after all.
    """

    kind: str
    message: str
    words: Callable[[Found], str | None]


def event_of(message: str) -> tuple[str, str] | None:
    """Return the kind and the text of the event that a message of the log tells of; None when it tells of none.

    The text is one line, printable and at most 200 letters, whatever the log says.
    """
    for row, expression in _COMPILED:
        if found := expression.match(message):
            text = row.words(found)
            return (row.kind, one_line(text)) if text else None
    return None


def table_of(path: str) -> str | None:
    """Return `keyspace.table` (with `.index` where it is one) of an sstable's path; None for Cassandra's own."""
    found = _TABLE.search(path)
    if found is None:
        return UNNAMED
    if found["keyspace"] == "system" or found["keyspace"].startswith("system_"):
        return None
    return ".".join(filter(None, found.group("keyspace", "table", "index")))


def _flushed(found: Found) -> str | None:
    table = table_of(found["path"])
    return table and f"flushed {table} {_size(found['size'])}"


def _compacted(found: Found) -> str | None:
    # Nothing was left to write, when all of it had expired: then no path says whose it was.
    paths = found["paths"].rstrip(",").split(",") if found["paths"] else []
    table = table_of(paths[0]) if paths else UNNAMED
    sstables, milliseconds = _whole(found["sstables"]), _whole(found["ms"])
    took = f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
    sizes = _from_to(_size(found["before"]), _size(found["after"]))
    return table and f"compacted {table} {sstables} -> {len(paths)} sstables, {sizes} in {took}"


def _dropped(found: Found) -> str:
    own, cross, over_s = int(found["own"]), int(found["cross"]), int(found["ms"]) / 1000
    return f"dropped {own + cross} {found['verb']} in {over_s:g} s ({own} internal, {cross} cross-node)"


def _repair_started(found: Found) -> str:
    how = {"true": " (incremental)", "false": " (full)"}.get(found["incremental"] or "", "")
    return f"repair #{found['number']} of {found['keyspace']} started{how}"


def _streams(found: Found) -> str:
    received, sent = _files(found["in_files"], found["in_size"]), _files(found["out_files"], found["out_size"])
    return f"stream {found['id'][:8]} receives {received}, sends {sent}"


def _files(number: str, size: str) -> str:
    return f"{number} {'file' if number == '1' else 'files'} {_size(size)}" if int(number) else "nothing"


def _node(found: Found) -> str:
    """Return the address of `name/address:port`."""
    peer = _PEER.fullmatch(found["node"])
    return peer["address"].strip("[]") if peer else found["node"].rpartition("/")[2]


def _whole(text: str) -> int:
    """Return a whole number, however its thousands are told apart."""
    return int(re.sub(r"\D", "", text))


def _size(text: str) -> str:
    """Return a size such as `12.345MiB` with one decimal, in the unit that fits."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return text
    amount = float(found["amount"].replace(",", "."))
    place = "BKMGT".index(found["unit"].strip()[0].upper())
    amount *= 1024**place
    place = 0
    while amount >= 1024 and place < len(UNITS) - 1:
        amount, place = amount / 1024, place + 1
    return f"{amount:.1f} {UNITS[place]}" if place else f"{amount:.0f} B"


def _from_to(before: str, after: str) -> str:
    """Return two sizes, with their unit once where it is the same."""
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
        lambda found: f"repair #{found['number']} {found['end']}",
    ),
    Row(
        "repair",
        rf"\[repair #(?P<id>{_ID})\] (?:parentSessionId = {_ID}: )?new session: will sync ",
        lambda found: f"repair session {found['id'][:8]} started",
    ),
    Row(
        "repair",
        rf"\[repair #(?P<id>{_ID})\] (?i:session completed) (?P<end>successfully|with the following error)",
        lambda found: f"repair session {found['id'][:8]} {'finished' if found['end'] == 'successfully' else 'failed'}",
    ),
    Row(
        "gc",
        r"(?P<collector>\w[\w .:-]{0,60}?) GC in (?P<ms>\d{1,18})ms\.",
        lambda found: f"GC {found['collector']} {found['ms']} ms",
    ),
    Row(
        "dropped",
        r"(?P<verb>[A-Z_]+) messages were dropped in last (?P<ms>\d{1,18}) ms: "
        r"(?P<own>\d{1,18}) internal and (?P<cross>\d{1,18}) cross node",
        _dropped,
    ),
    Row("node_up", r"InetAddress (?P<node>\S+) is now UP", lambda found: f"{_node(found)} is UP"),
    Row("node_down", r"InetAddress (?P<node>\S+) is now DOWN", lambda found: f"{_node(found)} is DOWN"),
    Row("node_up", r"Node (?P<node>\S+) has restarted, now UP", lambda found: f"{_node(found)} has restarted"),
    Row("node_joined", r"Node (?P<node>\S+) is now part of the cluster", lambda found: f"{_node(found)} joined"),
    Row("node_joined", r"JOINING: Starting to bootstrap", lambda _: "this node joins: it starts to bootstrap"),
    Row("node_left", r"Removing tokens \[[^\]]*\] for (?P<node>\S+)", lambda found: f"{_node(found)} left"),
    Row("node_left", r"DECOMMISSIONED\b", lambda _: "this node is decommissioned"),
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
        lambda found: f"stream {found['id'][:8]} {found['end'].split()[-1]}",
    ),
    Row(
        "hints",
        rf"Finished hinted handoff of file \S+ to endpoint (?P<node>\S+): {_ID}(?P<part>, partially)?",
        lambda found: f"hints {'partly ' if found['part'] else ''}delivered to {_node(found)}",
    ),
    Row("start", r"Starting listening for CQL clients on ", lambda _: "this node takes clients"),
    Row("stop", r"DRAINED\b", lambda _: "this node is drained"),
    Row("stop", r"Announcing shutdown\b", lambda _: "this node shuts down"),
    Row("error", r"Exception in thread (?P<thread>.+)", lambda found: f"exception in thread {found['thread']}"),
)

_COMPILED = tuple((row, re.compile(row.message)) for row in ROWS)

KINDS = frozenset(row.kind for row in ROWS)
"""The kinds of events that a log tells."""

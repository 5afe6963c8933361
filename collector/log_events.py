"""What Cassandra's log says happened: one row per kind of message, tried in their order.

Found on real nodes of 3.11.19, 4.0.17, 4.1.9 and 5.0.8, and in the texts of their jars; `docs/log.md` says which
message stands in which file.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collector.jolokia import one_line

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# What nodes speak to each other on by default is not worth repeating.
STORAGE_PORTS = ("7000", "7001")

Found = re.Match[str]

# A JVM may write numbers as its language does: 12.345 or 12,345, thousands apart by almost anything.
_SIZE = r"\d+(?:[.,]\d{1,3})?(?:bytes| bytes|[KMGT]iB|B)"
_COUNT = r"\d[\d.,'’\s]*"
_ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
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


def _flushed(found: Found) -> str | None:
    table = table_of(found["path"])
    return table and f"flushed {table} {_size(_bytes(found['size']))}"


def _compacted(found: Found) -> str | None:
    paths = found["paths"].rstrip(",").split(",")
    table = table_of(paths[0]) if found["paths"] else "a table that is not named"
    made = len(paths) if found["paths"] else 0
    sizes = _sizes(_bytes(found["before"]), _bytes(found["after"]))
    return table and f"compacted {table} {_count(found['sstables'])} -> {made} sstables, {sizes} in {_took(found)}"


def _dropped(found: Found) -> str:
    own, cross, over_s = int(found["own"]), int(found["cross"]), int(found["ms"]) / 1000
    return f"dropped {own + cross} {found['verb']} in {over_s:g} s ({own} internal, {cross} cross-node)"


def _repair_started(found: Found) -> str:
    how = {"true": ", incremental", "false": ", full"}.get(found["incremental"] or "", "")
    return f"repair #{found['number']} of {found['keyspace']} started{how}"


def _streams(found: Found) -> str:
    parts = (f"{word} {found[files]} files {_size(_bytes(found[size]))}" for word, files, size in _STREAMS)
    return f"stream {found['id'][:8]} {' and '.join(parts)}"


_STREAMS = (("receives", "in_files", "in_size"), ("sends", "out_files", "out_size"))

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
        r"Starting repair command #(?P<number>\d+) \([^)]*\), repairing keyspace (?P<keyspace>\w+) with repair options "
        r"\((?:.*?\bincremental: (?P<incremental>true|false))?",
        _repair_started,
    ),
    Row(
        "repair",
        rf"(?:\[repair #{_ID}\]\s*)?Repair command #(?P<number>\d+) (?P<end>finished in \d[\w .]*|finished with error|failed)",
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
        r"(?P<collector>\w[\w .:-]{0,60}?) GC in (?P<ms>\d+)ms\.",
        lambda found: f"GC {found['collector']} {found['ms']} ms",
    ),
    Row(
        "dropped",
        r"(?P<verb>[A-Z_]+) messages were dropped in last (?P<ms>\d+) ms: "
        r"(?P<own>\d+) internal and (?P<cross>\d+) cross node",
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
        rf"\[Stream #(?P<id>{_ID})(?:,? ID#\d+)?\] Prepare completed\. Receiving (?P<in_files>\d+) files\((?P<in_size>{_SIZE})\)"
        rf", sending (?P<out_files>\d+) files\((?P<out_size>{_SIZE})\)",
        _streams,
    ),
    Row(
        "stream",
        rf"\[Stream #(?P<id>{_ID})\] (?P<end>All sessions completed|Stream failed|Stream aborted)",
        lambda found: f"stream {found['id'][:8]} {found['end'].split()[-1]}",
    ),
    Row(
        "hints",
        r"Finished hinted handoff of file \S+ to endpoint (?P<node>[^\s:]*[^\s]*): \S+?(?P<part>, partially)?$",
        lambda found: f"hints {'partly ' if found['part'] else ''}delivered to {_node(found)}",
    ),
    Row("start", r"Starting listening for CQL clients on ", lambda _: "this node takes clients"),
    Row("stop", r"DRAINED\b", lambda _: "this node is drained"),
    Row("stop", r"Announcing shutdown\b", lambda _: "this node shuts down"),
    Row("error", r"Exception in thread (?P<thread>.+)", lambda found: f"exception in thread {found['thread']}"),
)

_COMPILED = tuple((row, re.compile(row.message)) for row in ROWS)


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
        return "a table that is not named"
    if found["keyspace"] == "system" or found["keyspace"].startswith("system_"):
        return None
    return ".".join(filter(None, found.group("keyspace", "table", "index")))

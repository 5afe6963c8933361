"""`nodetool info`: the node's load, heap, exceptions, caches and identity."""

import re

from collector.model.metric import Metric
from collector.nodetool.reports.report import Draft, Report, decimal, parted, shown, size, unique, whole

METRICS: tuple[Metric, ...] = ()
ARGUMENTS = ("info",)
FILLS = frozenset(
    {
        "cassandra_cache_bytes",
        "cassandra_cache_capacity_bytes",
        "cassandra_cache_entries",
        "cassandra_cache_hits_total",
        "cassandra_cache_requests_total",
        "cassandra_exceptions_total",
        "cassandra_jvm_heap_max_bytes",
        "cassandra_jvm_heap_used_bytes",
        "cassandra_load_bytes",
    }
)

_CACHES = {"Key Cache": "KeyCache", "Row Cache": "RowCache", "Counter Cache": "CounterCache"}
# The node may have none, by its settings.
_CHUNKS = "Chunk Cache"
_HEAP = "Heap Memory (MB)"
_SAID = {
    "ID": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "Generation No": re.compile(r"[0-9]+"),
    "Uptime (seconds)": re.compile(r"[0-9]+"),
    "Data Center": re.compile(r".+"),
    "Rack": re.compile(r".+"),
}
_SIZES = {
    "cassandra_cache_entries": (re.compile(r"entries (\S+)"), whole),
    "cassandra_cache_bytes": (re.compile(r"size (.+)"), size),
    "cassandra_cache_capacity_bytes": (re.compile(r"capacity (.+)"), size),
}
_HITS, _MISSES, _REQUESTS = (re.compile(rf"(\S+) {what}") for what in ("hits", "misses", "requests"))
_MIB = 2**20


def parse(text: str) -> Report:
    """Return what the report says; sizes are rounded as nodetool rounds them."""
    draft = Draft(text)
    told = unique(draft.lines, ("Load", _HEAP, "Exceptions", *_CACHES, *_SAID), draft)
    if "Load" in told:
        draft.take(("cassandra_load_bytes",), size, told["Load"], "Load")
    if "Exceptions" in told:
        draft.take(("cassandra_exceptions_total",), whole, told["Exceptions"], "Exceptions")
    if _HEAP in told:
        _heap(draft, told[_HEAP])
    if told and not any(parted(line)[0] == "Token" for line in draft.lines):
        # It comes last of what every version tells: a cache that may be missing was not cut off.
        draft.problem("there is no 'Token', with which it ends")
    chunks = unique(draft.lines, (_CHUNKS,), draft)
    for label, cache in {**_CACHES, _CHUNKS: "ChunkCache"}.items():
        if label in told or label in chunks:
            _cache(draft, cache, {**told, **chunks}[label])
    return draft.report({label: told[label] for label in _SAID if label in told and _plain(draft, label, told[label])})


def _plain(draft: Draft, label: str, value: str) -> bool:
    draft.understood = True
    if _SAID[label].fullmatch(value):
        return True
    draft.problem(f"{label}: {shown(value)} is not of its form")
    return False


def _heap(draft: Draft, value: str) -> None:
    used, _, most = value.partition(" / ")
    draft.take(("cassandra_jvm_heap_used_bytes",), _mebibytes, used.strip(), _HEAP)
    draft.take(("cassandra_jvm_heap_max_bytes",), _mebibytes, most.strip(), _HEAP)


def _mebibytes(raw: object) -> int | None:
    number = decimal(raw)
    return round(number * _MIB) if number is not None and number > 0 else None


def _cache(draft: Draft, cache: str, value: str) -> None:
    parts = value.split(", ")
    for name, (pattern, convert) in _SIZES.items():
        draft.take((name, cache), convert, _only(pattern, parts), name, cache)
    hits, misses, requests = (_only(pattern, parts) for pattern in (_HITS, _MISSES, _REQUESTS))
    draft.take(("cassandra_cache_requests_total", cache), whole, requests, "the number of requests", cache)
    if misses and not hits:
        # The chunk cache counts what it did not have.
        try:
            hits = str(whole(requests) - whole(misses))
        except ValueError:
            hits = ""
    draft.take(("cassandra_cache_hits_total", cache), whole, hits, "the number of hits", cache)


def _only(pattern: re.Pattern[str], parts: list[str]) -> str:
    found = [match[1] for part in parts if (match := pattern.fullmatch(part))]
    return found[0] if len(found) == 1 else ""

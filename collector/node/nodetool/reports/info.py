"""`nodetool info`: the node's load, heap, exceptions, caches and identity."""

import re

from collector.node.nodetool.reports.report import Draft, Report, decimal, parted, shown, size, unique, whole

ARGUMENTS = ("info",)

_CACHES = {"Key Cache": "KeyCache", "Row Cache": "RowCache", "Counter Cache": "CounterCache"}
# nodetool prints this cache only if the node's settings enable it.
_CHUNKS = "Chunk Cache"
_HEAP = "Heap Memory (MB)"
_PROPERTIES = {
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
FILLS = frozenset(
    {
        *_SIZES,
        "cassandra_cache_hits_total",
        "cassandra_cache_requests_total",
        "cassandra_exceptions_total",
        "cassandra_jvm_heap_max_bytes",
        "cassandra_jvm_heap_used_bytes",
        "cassandra_load_bytes",
    }
)
_HITS, _MISSES, _REQUESTS = (re.compile(rf"(\S+) {noun}") for noun in ("hits", "misses", "requests"))
_MIB = 2**20


def parse(text: str) -> Report:
    """Return the values and the node's properties; sizes are inexact, because nodetool rounds them."""
    draft = Draft(text)
    values = unique(draft.lines, ("Load", _HEAP, "Exceptions", *_CACHES, *_PROPERTIES), draft)
    if "Load" in values:
        draft.take(("cassandra_load_bytes",), size, values["Load"], "Load")
    if "Exceptions" in values:
        draft.take(("cassandra_exceptions_total",), whole, values["Exceptions"], "Exceptions")
    if _HEAP in values:
        _heap(draft, values[_HEAP])
    if values and not any(parted(line)[0] == "Token" for line in draft.lines):
        # Every version prints this line last. If it is missing, the report was truncated, and caches may be missing.
        draft.problem("missing 'Token', the last line of a complete report")
    chunks = unique(draft.lines, (_CHUNKS,), draft)
    for label, cache in {**_CACHES, _CHUNKS: "ChunkCache"}.items():
        if label in values or label in chunks:
            _cache(draft, cache, {**values, **chunks}[label])
    return draft.report(
        {
            label: values[label]
            for label in _PROPERTIES
            if label in values and _is_well_formed(draft, label, values[label])
        }
    )


def _is_well_formed(draft: Draft, label: str, value: str) -> bool:
    draft.recognised = True
    if _PROPERTIES[label].fullmatch(value):
        return True
    draft.problem(f"{label}: unexpected value {shown(value)}")
    return False


def _heap(draft: Draft, value: str) -> None:
    used, _, maximum = value.partition(" / ")
    draft.take(("cassandra_jvm_heap_used_bytes",), _mebibytes, used.strip(), _HEAP)
    draft.take(("cassandra_jvm_heap_max_bytes",), _mebibytes, maximum.strip(), _HEAP)


def _mebibytes(raw: object) -> int | None:
    number = decimal(raw)
    return round(number * _MIB) if number is not None and number > 0 else None


def _cache(draft: Draft, cache: str, value: str) -> None:
    parts = value.split(", ")
    for name, (pattern, convert) in _SIZES.items():
        draft.take((name, cache), convert, _single_match(pattern, parts), name, cache)
    hits, misses, requests = (_single_match(pattern, parts) for pattern in (_HITS, _MISSES, _REQUESTS))
    draft.take(("cassandra_cache_requests_total", cache), whole, requests, "the number of requests", cache)
    if misses and not hits:
        # nodetool prints the chunk cache's misses instead of its hits.
        try:
            hits = str(whole(requests) - whole(misses))
        except ValueError:
            hits = ""
    draft.take(("cassandra_cache_hits_total", cache), whole, hits, "the number of hits", cache)


def _single_match(pattern: re.Pattern[str], parts: list[str]) -> str:
    matches = [match[1] for part in parts if (match := pattern.fullmatch(part))]
    return matches[0] if len(matches) == 1 else ""

"""Signals for caches and buffer pools."""

from dashboards.expression import Gauge, Rate, Ratio
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "cache_hits",
        "Cache hit ratio",
        Ratio(Rate("cassandra_cache_hits_total"), Rate("cassandra_cache_requests_total")),
        Unit.RATIO,
        "Fraction of lookups that hit. A key cache below 90% under steady load is too small.",
        ("cache",),
        "Absent for a cache that is disabled or unused.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "cache_bytes",
        "Cache size",
        Gauge("cassandra_cache_bytes"),
        Unit.BYTES,
        "Memory used by the caches.",
        ("cache",),
    ),
    Signal(
        "buffer_misses",
        "Buffer pool misses",
        Rate("cassandra_buffer_pool_misses_total"),
        Unit.PER_S,
        "Buffer requests that the pool could not serve. Each of them costs an allocation; frequent misses mean that "
        "the pool is too small.",
        ("pool",),
    ),
)

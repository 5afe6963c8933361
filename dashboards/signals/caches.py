"""The caches, and the buffers beside them."""

from dashboards.expression import Gauge, Rate, Ratio
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "cache_hits",
        "Cache hit ratio",
        Ratio(Rate("cassandra_cache_hits_total"), Rate("cassandra_cache_requests_total")),
        Unit.RATIO,
        "Look-ups that found what they wanted: a key cache below 90 % under a steady load is too small.",
        ("cache",),
        "Absent for a cache that is off or is not asked.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "cache_bytes",
        "Cache size",
        Gauge("cassandra_cache_bytes"),
        Unit.BYTES,
        "Memory that the caches take.",
        ("cache",),
    ),
    Signal(
        "buffer_misses",
        "Buffer pool misses",
        Rate("cassandra_buffer_pool_misses_total"),
        Unit.PER_S,
        "A pool that is too small: each of these costs an allocation.",
        ("pool",),
    ),
)

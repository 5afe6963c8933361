"""Key, row, counter and chunk cache, and the buffer pool."""

from collector.jolokia.mbean import METRICS, counter, gauge
from collector.model.metric import Aggregation, ScrapeInterval

_BEAN = METRICS + "type=Cache,scope={cache},name="
_POOL = METRICS + "type=BufferPool,scope={pool},name="

BEANS = (
    counter("cassandra_cache_hits_total", "Look-ups that found what they wanted.", _BEAN + "Hits"),
    counter("cassandra_cache_requests_total", "Look-ups.", _BEAN + "Requests"),
    gauge(
        "cassandra_cache_bytes",
        "Space that the cache takes.",
        _BEAN + "Size",
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_cache_capacity_bytes",
        "Space that it may take.",
        _BEAN + "Capacity",
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_cache_entries",
        "Entries in the cache.",
        _BEAN + "Entries",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_buffer_pool_bytes",
        "Memory that the pool takes.",
        _POOL + "Size",
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    counter("cassandra_buffer_pool_misses_total", "Buffers allocated outside the pool.", _POOL + "Misses"),
)

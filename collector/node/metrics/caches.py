"""Key, row, counter and chunk caches, and the buffer pool."""

from collector.model.mbean import METRICS, counter, size, slow_total

_BEAN = METRICS + "type=Cache,scope={cache},name="
_POOL = METRICS + "type=BufferPool,scope={pool},name="

BEANS = (
    counter("cassandra_cache_hits_total", "Number of cache hits.", _BEAN + "Hits"),
    counter("cassandra_cache_requests_total", "Number of cache lookups.", _BEAN + "Requests"),
    size("cassandra_cache_bytes", "Size of the cache in bytes.", _BEAN + "Size"),
    size("cassandra_cache_capacity_bytes", "Capacity of the cache in bytes.", _BEAN + "Capacity"),
    slow_total("cassandra_cache_entries", "Number of entries in the cache.", _BEAN + "Entries"),
    size("cassandra_buffer_pool_bytes", "Size of the buffer pool in bytes.", _POOL + "Size"),
    counter("cassandra_buffer_pool_misses_total", "Number of buffers allocated outside the pool.", _POOL + "Misses"),
)

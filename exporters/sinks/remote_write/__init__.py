"""Prometheus remote write: encodes ticks as the series of /metrics, and the requests that carry them."""

"""The columns of one node: decoding, rates and sums per interval, as arrays. Requires numpy and orjson."""

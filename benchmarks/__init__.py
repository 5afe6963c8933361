"""Benchmarks: CPU, memory and latency on real nodes, printed with their bounds. They are not part of the test suite."""

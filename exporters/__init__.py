"""Exports: rows, live frames, summaries, files, plots, Prometheus, the API and sinks. They do not depend on `cli`."""

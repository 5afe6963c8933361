"""Exports: terminal lines, files, plots, Prometheus, the agent's API, and sinks. Independent of `cli`."""

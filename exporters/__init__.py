"""Exports: terminal lines, files, plots, Prometheus, the agent's API, and sinks. They do not depend on `cli`."""

"""Grafana's boards: `contents` says what is on them, the rest how Grafana has it said; `json` is what comes of it."""

"""Prometheus rules: recording rules, and alerts on the same expressions as in the panels."""

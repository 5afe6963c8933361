"""Prometheus rules: recording rules, and alerts on the same expressions as the panels."""

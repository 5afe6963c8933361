"""Prometheus rules: recording rules, and alerts on the expressions of the panels."""

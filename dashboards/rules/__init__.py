"""Prometheus rules: recording rules, and alerts that use the same expressions as the panels."""

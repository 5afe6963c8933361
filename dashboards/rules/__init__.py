"""Prometheus' rules: what is recorded, and what somebody must be told of, in the expressions of the panels."""

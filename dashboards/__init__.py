"""Grafana dashboards and Prometheus rules, derived from the metric catalogue."""

"""Grafana dashboards and Prometheus rules, and the signals and thresholds that they share."""

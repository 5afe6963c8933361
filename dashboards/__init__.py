"""What people look at elsewhere: Grafana's boards and Prometheus' rules, derived from the catalogue."""

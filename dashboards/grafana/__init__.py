"""Grafana dashboards: `definitions` lists their panels, and `json` holds the generated files."""

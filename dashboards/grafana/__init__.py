"""Grafana dashboards: `definitions` lists their panels, `json` holds the generated files."""

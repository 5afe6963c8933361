"""Compare the panels of a real Grafana with `casstat merge`: see `__main__`."""

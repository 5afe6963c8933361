"""Compare the panels of a real Grafana with the output of `casstat merge`; see `__main__`."""

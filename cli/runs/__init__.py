"""Programs for runs: measured periods of a cluster."""

"""Records, fetches, completes, summarises and lists runs: measured periods of a cluster."""

"""Records, fetches, completes, summarises and lists runs. A run is a period in which a cluster is measured."""

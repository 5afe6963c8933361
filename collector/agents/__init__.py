"""Access to agents: their addresses, API, runs and recordings."""

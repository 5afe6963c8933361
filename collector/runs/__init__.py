"""Runs: measured periods of a cluster, their files and metadata, and the requests to agents that record them."""

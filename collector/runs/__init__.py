"""Runs: measured periods of a cluster, their files and metadata."""

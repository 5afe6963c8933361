"""Clients for the agents of a run, and private agents."""

"""Simulated nodes under load: their snapshots are a pure function of a seed, the node's number and the time."""

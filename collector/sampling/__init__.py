"""Sampling one node: sources read on every tick, snapshots, and the samples derived from them."""

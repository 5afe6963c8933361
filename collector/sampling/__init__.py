"""Sampling one node: sources read on every tick, snapshots, and samples derived from them."""

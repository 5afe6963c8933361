"""Samples one node: reads its sources on every tick, forms snapshots, and derives samples from them."""

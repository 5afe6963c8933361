"""Aggregation across nodes, and merging of recordings onto a grid of intervals."""

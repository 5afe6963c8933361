"""Aggregation across nodes, merging of recordings onto a grid of intervals, and live clusters."""

"""Frozen plain data and pure functions: metrics, snapshots, samples, histograms, rates and clocks."""

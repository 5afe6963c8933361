"""Immutable data classes and pure functions: metrics, snapshots, samples, histograms, rates and clocks."""

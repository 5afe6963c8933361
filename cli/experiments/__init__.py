"""Experiments of several runs: sweeps and searches for the capacity."""

"""Comparisons of two groups of runs: confidence intervals by resampling, and their output."""

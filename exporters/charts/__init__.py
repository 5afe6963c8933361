"""Plots of a run: self-contained gnuplot scripts and data files."""

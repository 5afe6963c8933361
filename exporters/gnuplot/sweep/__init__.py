"""Plots of a sweep."""

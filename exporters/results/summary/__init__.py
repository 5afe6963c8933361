"""Summaries of runs: one row per phase, conditions on its columns, and text."""

"""Runs the command of a run, and follows its output."""

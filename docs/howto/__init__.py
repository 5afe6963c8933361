"""Generates the pages of this directory from runs on a real cluster."""

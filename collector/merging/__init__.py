"""Recordings of many nodes brought onto one grid of times."""

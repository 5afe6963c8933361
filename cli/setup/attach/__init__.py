"""Loads Jolokia into a running node."""

"""Selects a node on this machine and the transport to it: Jolokia or nodetool."""

"""Selects the node to read and the transport to it: Jolokia or nodetool."""

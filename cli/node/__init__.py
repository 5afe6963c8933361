"""Selecting a node of this machine and the transport to it."""

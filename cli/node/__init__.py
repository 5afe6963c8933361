"""Selection of a node on this machine and of the transport to it: Jolokia or nodetool."""

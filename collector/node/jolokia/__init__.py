"""Reads a node through Jolokia: an HTTP client with deadlines, MBean requests, and the source that uses them."""

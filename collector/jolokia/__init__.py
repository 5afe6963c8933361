"""A node read through Jolokia: HTTP client with deadlines, MBean requests, and the source that uses them."""

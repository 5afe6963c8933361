"""Code that sinks share (URLs, HTTP, TLS, points, series names, line protocol), and the registry of sinks."""

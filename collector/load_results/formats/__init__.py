"""The formats of load generators' results: one module each, see `client_format`."""

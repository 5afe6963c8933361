"""HTTP clients: connections with a deadline, TLS, and typed reasons for failures."""

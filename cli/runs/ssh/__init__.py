"""Recording over SSH: addresses, sessions, and agents that record to spools on remote hosts."""

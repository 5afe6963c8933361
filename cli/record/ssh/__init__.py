"""Recording over SSH: sessions, and agents that record to spools on remote hosts."""

"""What leaves casstat: lines, and later every sink. Knows the collector, no terminal and no setting."""

"""What the formats of JMeter have in common."""

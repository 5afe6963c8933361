"""What sinks share: URLs, points, encodings, and the exchange with a store."""

"""Parts shared by several sinks."""

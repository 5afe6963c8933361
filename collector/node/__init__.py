"""One node: its metrics, and the sources that read them."""

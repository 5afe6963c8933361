"""The two forms of the generic CSV."""

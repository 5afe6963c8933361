"""The columnar merge: a vectorised implementation with the same results as the reference merge."""

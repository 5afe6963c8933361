"""The columnar merge: vectorised, with the same results as the reference merge in `collector.cluster`."""

"""Pictures of a run: gnuplot scripts and data files that stand alone."""

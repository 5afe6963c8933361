"""The highest rate that meets all objectives: verdicts on steps, the search, the knee, and the results."""

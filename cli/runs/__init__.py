"""What is done with recorded runs: imports, summaries, reports, comparisons, lists and redaction; and fetching."""

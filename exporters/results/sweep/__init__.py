"""The results of a sweep: statistics over its runs, and tables of them."""

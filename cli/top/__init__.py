"""`casstat top`: a cluster on one screen. Pure functions render it; only `app` depends on a terminal."""

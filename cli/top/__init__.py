"""`casstat top`: a cluster on one screen, rendered by pure functions; only `textual_app` depends on a terminal."""

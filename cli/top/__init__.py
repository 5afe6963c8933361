"""`casstat top`: a cluster on one screen, rendered by pure functions; `textual_app` handles the terminal."""

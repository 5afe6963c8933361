"""The agents of a run: those that the user names, and private ones."""

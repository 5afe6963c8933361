"""`casstat simulate`: many simulated agents that push to stores and serve `/metrics`, from one process."""

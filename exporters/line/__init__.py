"""The rows of the default command: columns, the view that selects them, and output as text, JSON and CSV."""

"""The line: columns, the view that selects them, and rows as text, JSON and CSV."""

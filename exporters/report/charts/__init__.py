"""The charts of a report, as SVG, with the values that the script of the page shows."""

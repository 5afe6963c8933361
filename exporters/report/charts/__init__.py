"""The charts of a report, as SVG, with the data that the script of the page shows."""

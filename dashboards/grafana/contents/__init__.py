"""What is on which board: a file for each."""

"""What `casstat doctor` looks at: one file for each subject."""

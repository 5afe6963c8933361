"""What people look at elsewhere."""

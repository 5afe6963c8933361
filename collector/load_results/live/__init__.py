"""Reading results while load generators write them."""

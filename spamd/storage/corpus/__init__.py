"""What was learned: lessons, counts, weights, and the model in memory made of them."""

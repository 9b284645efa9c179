"""What was learned from each user alone: lessons, and the layer that follows from them."""

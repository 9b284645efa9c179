"""What is counted of a message: words, pairs, header fields, shape, 4-grams."""

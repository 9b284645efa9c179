"""Large messages are read here: whose is next, and the processes that read them."""

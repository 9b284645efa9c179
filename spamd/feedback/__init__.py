"""Learning from what people do with their mail: moved, marked or reported."""

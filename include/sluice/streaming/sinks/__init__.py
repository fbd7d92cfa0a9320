"""The sinks beside the target: each gets the rows of a batch once, or can tell that it has them."""

"""One streaming query: source, parse, transform, classify, deduplicate, write."""

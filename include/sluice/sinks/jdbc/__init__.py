"""Batches in a table of PostgreSQL, each once."""

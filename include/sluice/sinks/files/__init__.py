"""Batches as files of a folder that any reader may read."""

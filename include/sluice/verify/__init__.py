"""Tries the engine out: kills a pipeline's runs, and compares tables as multisets."""

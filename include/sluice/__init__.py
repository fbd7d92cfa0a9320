"""Sluice: scheduled PySpark Structured Streaming runs in which every row has exactly one fate."""

__version__ = "0.1.0"

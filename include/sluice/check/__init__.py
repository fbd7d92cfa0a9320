"""Whether what a pipeline is connected to answers, tried piece by piece and without Spark."""

from .pipeline import Finding, check_pipeline

__all__ = ["Finding", "check_pipeline"]

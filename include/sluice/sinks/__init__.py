"""The sinks beside the target: each gets the rows of a batch once, or can tell that it has them."""

from .deliver import WRITERS, deliver, describe_sink, prepare_sink, writer_of
from .delivery import Delivery
from .writer import Preparation, Writer

__all__ = [
    "WRITERS",
    "Delivery",
    "Preparation",
    "Writer",
    "deliver",
    "describe_sink",
    "prepare_sink",
    "writer_of",
]

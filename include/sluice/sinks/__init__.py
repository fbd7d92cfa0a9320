"""The sinks beside the target: each gets the rows of a batch once, or can tell that it has them."""

from .deliver import deliver, describe_sink, prepare_sinks
from .delivery import Delivery

__all__ = ["Delivery", "deliver", "describe_sink", "prepare_sinks"]

"""Where a step's rows come from, as Spark reads them."""

from .choose import INTAKES, Found, find_statics, open_inputs, rehearse_inputs
from .inputs import Inputs, Statics
from .intake import CROWDING_BYTES, BatchInput, Intake, Opening, Room
from .static import StaticTable
from .static_topic import StaticTopic

__all__ = [
    "CROWDING_BYTES",
    "INTAKES",
    "BatchInput",
    "Found",
    "Inputs",
    "Intake",
    "Opening",
    "Room",
    "StaticTable",
    "StaticTopic",
    "Statics",
    "find_statics",
    "open_inputs",
    "rehearse_inputs",
]

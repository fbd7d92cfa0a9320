"""Where a step's rows come from, as Spark reads them."""

from .choose import INTAKES, Found, choose_intake, rehearse_intake
from .intake import BatchInput, Intake, Opening

__all__ = [
    "INTAKES",
    "BatchInput",
    "Found",
    "Intake",
    "Opening",
    "choose_intake",
    "rehearse_intake",
]

"""Where a step's rows come from, as Spark reads them."""

from .choose import choose_intake, rehearse_intake
from .intake import BatchInput, Intake

__all__ = ["BatchInput", "Intake", "choose_intake", "rehearse_intake"]
